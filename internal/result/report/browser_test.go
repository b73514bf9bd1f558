// SPDX-License-Identifier: Apache-2.0

package report

import (
	"context"
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/drayage/dray/test/testenv"
)

// probe is a page that holds reports in frames of given widths, measures each, and
// writes the results into itself. The reports run no script of their own.
const probe = `<!DOCTYPE html><body><script>
window.onerror = e => document.body.append("script error: " + e);
const frames = %s;
function measure(d) {
  const root = d.documentElement, seen = {};
  seen.overflow = root.scrollWidth - root.clientWidth;
  const h = d.querySelector(".headline").getBoundingClientRect();
  seen.headline = h.width > 0 && h.height > 0 && h.top < 900;
  const shown = s => { const e = d.querySelector(s), b = e && e.getBoundingClientRect(); return !!e && b.width > 0 && b.height > 0; };
  seen.wide = shown(".topology.wide"); seen.narrow = shown(".topology.narrow"); seen.plot = shown("svg.plot");
  seen.small = [...d.querySelectorAll("svg.plot text")].filter(t => t.getBoundingClientRect().height < 8).length;
  seen.outside = [...d.querySelectorAll("svg text")].filter(t => {
    const s = t.ownerSVGElement.getBoundingClientRect(), b = t.getBoundingClientRect();
    return s.width > 0 && (b.left < s.left - 1 || b.right > s.right + 1 || b.bottom > s.bottom + 2);
  }).map(t => t.textContent).join("|");
  seen.clipped = [...d.querySelectorAll(".scroll")].filter(s => s.scrollWidth > s.clientWidth).map(s => s.ariaLabel).join("|");
  return seen;
}
Promise.all(frames.map(f => new Promise(done => {
  const e = document.createElement("iframe");
  e.style = "width:" + f.width + "px;height:900px;border:0";
  e.onload = () => {
    const d = e.contentDocument, seen = measure(d);
    e.contentWindow.location.hash = "rec-3";
    setTimeout(() => {
      const top = d.getElementById("rec-3").getBoundingClientRect().top;
      seen.jumped = top >= -5 && top < 900;
      done(Object.fromEntries(Object.entries(seen).map(([k, v]) => [k, String(v)])));
    }, 300);
  };
  e.src = f.path;
  document.body.append(e);
}))).then(all => {
  const p = document.createElement("p");
  p.id = "out"; p.textContent = JSON.stringify(all);
  document.body.append(p);
});
</script>`

// frame is a page shown at a width.
type frame struct {
	html  string
	width int
}

// browse shows pages in frames and returns the probe's results for each. The pages
// request nothing.
func browse(t *testing.T, frames ...frame) []map[string]string {
	t.Helper()
	type source struct {
		Path  string `json:"path"`
		Width int    `json:"width"`
	}
	var sources []source
	pages := map[string]string{}
	for i, f := range frames {
		s := source{fmt.Sprintf("/report-%d.html", i), f.width}
		sources, pages[s.Path] = append(sources, s), f.html
	}
	list, err := json.Marshal(sources)
	testenv.Must(t, err)
	pages["/probe.html"] = fmt.Sprintf(probe, list)
	var mu sync.Mutex
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		if page, ok := pages[r.URL.Path]; ok {
			fmt.Fprint(w, page)
			return
		}
		mu.Lock()
		asked = append(asked, r.URL.Path)
		mu.Unlock()
		http.NotFound(w, r)
	}))
	defer server.Close()
	dom := dump(t, server.URL+"/probe.html")
	_, rest, ok := strings.Cut(dom, `<p id="out">`)
	if !ok {
		t.Fatalf("the probe wrote nothing: %.500s", dom)
	}
	line, _, _ := strings.Cut(rest, "</p>")
	var seen []map[string]string
	if err := json.Unmarshal([]byte(html.UnescapeString(line)), &seen); err != nil || len(seen) != len(frames) {
		t.Fatalf("the probe wrote %.500q: %v", line, err)
	}
	mu.Lock()
	defer mu.Unlock()
	for _, path := range asked {
		if path != "/favicon.ico" {
			t.Errorf("a page asked for %s", path)
		}
	}
	return seen
}

// dump is the document after the page has loaded.
func dump(t *testing.T, url string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-default-apps",
		"--user-data-dir="+t.TempDir(), "--window-size=1500,1000", "--virtual-time-budget=10000", "--dump-dom", url)
	cmd.WaitDelay = 5 * time.Second
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("chromium: %v: %s", err, stderr.String())
	}
	return string(out)
}

// has reports differences between seen and wanted.
func has(t *testing.T, what string, seen, want map[string]string) {
	t.Helper()
	for k, v := range want {
		if seen[k] != v {
			t.Errorf("%s: %s is %q, want %q", what, k, seen[k], v)
		}
	}
}

func TestPageInBrowser(t *testing.T) {
	testenv.Program(t, "chromium")
	text := page(t, bad())
	widths := []int{390, 768, 1440}
	var frames []frame
	for _, width := range widths {
		frames = append(frames, frame{text, width})
	}
	for i, seen := range browse(t, frames...) {
		has(t, fmt.Sprintf("%d px", widths[i]), seen, map[string]string{
			"overflow": "0", "headline": "true", "plot": "true", "jumped": "true", "outside": "", "small": "0", "clipped": "",
			"wide": fmt.Sprint(widths[i] > 736), "narrow": fmt.Sprint(widths[i] <= 736),
		})
	}
}

func TestBenchPageInBrowser(t *testing.T) {
	testenv.Program(t, "chromium")
	text := newBench(t).page(t)
	for i, seen := range browse(t, frame{text, 390}, frame{text, 1440}) {
		has(t, fmt.Sprintf("frame %d", i), seen, map[string]string{"overflow": "0", "outside": "", "small": "0", "clipped": ""})
	}
}

// paper is the width between the margins of a printed page, in CSS pixels.
const paper = 703

// onPaper makes a browser show the page in its print layout.
func onPaper(text string) frame {
	text = strings.ReplaceAll(text, "@media screen", "@media speech")
	return frame{strings.ReplaceAll(text, "@media print", "@media screen"), paper}
}

// A printed page has every column of every table, in the layout of a wide page.
func TestPrintedPageInBrowser(t *testing.T) {
	testenv.Program(t, "chromium")
	seen := browse(t, onPaper(page(t, bad())), onPaper(newBench(t).page(t)))
	has(t, "run", seen[0], map[string]string{"overflow": "0", "clipped": "", "wide": "true", "narrow": "false"})
	has(t, "bench", seen[1], map[string]string{"overflow": "0", "clipped": ""})
}

// The probe must be able to fail: it must detect a page that is too wide.
func TestBrowserProbeSeesOverflow(t *testing.T) {
	testenv.Program(t, "chromium")
	text := strings.Replace(page(t, good()), "<main>", `<main><div style="width:2000px">x</div>`, 1)
	if seen := browse(t, frame{text, 390})[0]; seen["overflow"] == "0" {
		t.Error("a page 2000 px wide is reported to fit 390 px")
	}
}
