// SPDX-License-Identifier: Apache-2.0

package report

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/drayage/dray/test/testenv"
)

// probe is a page that holds the report in a frame of a given width, measures
// it, and writes what it saw into itself. The report runs no script of its own.
const probe = `<!DOCTYPE html><body><iframe id="f" src="/report.html" style="width:%dpx;height:900px;border:0"></iframe>
<script>
window.onerror = e => document.body.append("script error: " + e);
document.getElementById("f").onload = e => {
  const d = e.target.contentDocument, w = e.target.contentWindow, root = d.documentElement;
  const out = [];
  out.push("overflow=" + (root.scrollWidth - root.clientWidth));
  const h = d.querySelector(".headline").getBoundingClientRect();
  out.push("headline=" + (h.width > 0 && h.height > 0 && h.top < 900));
  const shown = s => { const b = d.querySelector(s).getBoundingClientRect(); return b.width > 0 && b.height > 0; };
  out.push("wide=" + shown(".topology.wide"), "narrow=" + shown(".topology.narrow"), "plot=" + shown("svg.plot"));
  out.push("small=" + [...d.querySelectorAll("svg.plot text")].filter(t => t.getBoundingClientRect().height < 8).length);
  out.push("outside=" + [...d.querySelectorAll("svg text")].filter(t => {
    const s = t.ownerSVGElement.getBoundingClientRect(), b = t.getBoundingClientRect();
    return s.width > 0 && (b.left < s.left - 1 || b.right > s.right + 1 || b.bottom > s.bottom + 2);
  }).map(t => t.textContent).join("|"));
  out.push("clipped=" + [...d.querySelectorAll(".scroll")].filter(s => s.scrollWidth > s.clientWidth).map(s => s.ariaLabel).join("|"));
  w.location.hash = "rec-3";
  setTimeout(() => {
    const rec = d.getElementById("rec-3").getBoundingClientRect();
    out.push("jumped=" + (rec.top >= -5 && rec.top < 900));
    const p = document.createElement("p");
    p.id = "out"; p.textContent = out.join(";");
    document.body.append(p);
  }, 300);
};
</script>`

// browse shows the page in a frame of a width and returns what the probe saw,
// and what the browser asked the server for.
func browse(t *testing.T, html string, width int) (seen map[string]string, asked []string) {
	t.Helper()
	var mu sync.Mutex
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked = append(asked, r.URL.Path)
		mu.Unlock()
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		switch r.URL.Path {
		case "/probe.html":
			fmt.Fprintf(w, probe, width)
		case "/report.html":
			fmt.Fprint(w, html)
		default:
			http.NotFound(w, r)
		}
	}))
	defer server.Close()
	dom := dump(t, server.URL+"/probe.html")
	_, rest, ok := strings.Cut(dom, `<p id="out">`)
	if !ok {
		t.Fatalf("the probe wrote nothing: %.500s", dom)
	}
	line, _, _ := strings.Cut(rest, "</p>")
	seen = map[string]string{}
	for _, kv := range strings.Split(line, ";") {
		k, v, _ := strings.Cut(kv, "=")
		seen[k] = v
	}
	mu.Lock()
	defer mu.Unlock()
	return seen, asked
}

// dump is the document as it is after a page has loaded.
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

func TestPageInBrowser(t *testing.T) {
	testenv.Program(t, "chromium")
	html := page(t, bad())
	for _, width := range []int{390, 768, 1440} {
		t.Run(fmt.Sprint(width), func(t *testing.T) {
			seen, asked := browse(t, html, width)
			want := map[string]string{
				"overflow": "0", "headline": "true", "plot": "true", "jumped": "true", "outside": "", "small": "0", "clipped": "",
				"wide": fmt.Sprint(width > 736), "narrow": fmt.Sprint(width <= 736),
			}
			for k, v := range want {
				if seen[k] != v {
					t.Errorf("%s is %q, want %q", k, seen[k], v)
				}
			}
			for _, path := range asked {
				if path != "/probe.html" && path != "/report.html" && path != "/favicon.ico" {
					t.Errorf("the page asked for %s", path)
				}
			}
		})
	}
}

// paper is the width between the margins of a printed page, in CSS pixels.
const paper = 703

// onPaper makes a browser show the page as it prints it.
func onPaper(html string) string {
	html = strings.ReplaceAll(html, "@media screen", "@media speech")
	return strings.ReplaceAll(html, "@media print", "@media screen")
}

// A printed page has every column of every table, in the layout of a wide page.
func TestPrintedPageInBrowser(t *testing.T) {
	testenv.Program(t, "chromium")
	for name, html := range map[string]string{"run": page(t, bad()), "bench": newBench(t).page(t)} {
		// The probe looks for things that only the page of a run has.
		html = strings.Replace(html, "</main>", `<svg class="topology wide plot" width="9" height="9"></svg><svg class="topology narrow"></svg></main>`, 1)
		seen, _ := browse(t, onPaper(html), paper)
		if seen["clipped"] != "" || seen["overflow"] != "0" || seen["wide"] != "true" || seen["narrow"] != "false" {
			t.Errorf("%s: %v", name, seen)
		}
	}
}

// The probe must be able to fail: a page that is too wide is seen as such.
func TestBrowserProbeSeesOverflow(t *testing.T) {
	testenv.Program(t, "chromium")
	html := strings.Replace(page(t, good()), "<main>", `<main><div style="width:2000px">x</div>`, 1)
	if seen, _ := browse(t, html, 390); seen["overflow"] == "0" {
		t.Error("a page 2000 px wide is said to fit 390 px")
	}
}
