// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	runtimes "github.com/drayage/dray/internal/function/all"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/test/testenv"
)

const root = "../.."

// guides are the documents that a reader follows, command by command, each with
// its minimum number of executed command blocks.
var guides = []struct {
	name string
	run  int
}{
	{"README.md", 1}, {"docs/tour.md", 5}, {"docs/native-ports.md", 5}, {"docs/dpdk-ports.md", 3}, {"docs/net-dray.md", 2}, {"docs/switches.md", 1},
	{"docs/method.md", 1}, {"docs/vnf.md", 5}, {"docs/bench.md", 5}, {"docs/experiments.md", 3}, {"docs/vm.md", 2},
	{"docs/hosts.md", 1}, {"docs/placement.md", 1}, {"docs/paths.md", 5}, {"docs/queues.md", 2}, {"docs/sol001.md", 1}, {"docs/gtp.md", 1}, {"docs/ran.md", 4}, {"docs/fronthaul.md", 3}, {"docs/images.md", 1}, {"docs/install.md", 2}, {"docs/prepare.md", 1},
}

// withSources are guides that need an image of sources which are not part of Drayage, by the variable that names these.
var withSources = map[string]string{"docs/ran.md": "DRAY_RAN_SOURCE", "docs/fronthaul.md": "DRAY_OCUDU_SOURCE"}

// TestEveryCommandOfTheGuidesWorks runs the blocks of each guide in order, as a
// reader would: in a copy of the repository, built by its Makefile, with its own
// state directory.
func TestEveryCommandOfTheGuidesWorks(t *testing.T) {
	testenv.Root(t)
	testenv.Program(t, "runc", "iperf3", "sockperf", "qperf", "ip", "make", "gcc", "meson", "ninja", "pkg-config", "tcpdump", "dpdk-testpmd", "tshark", "scapy", "osmo-ggsn", "sgsnemu")
	reader := newReader(t)
	for _, guide := range guides {
		if variable := withSources[guide.name]; variable != "" && os.Getenv(variable) == "" {
			t.Logf("%s: not run: its sources are not part of Drayage: %s=FOLDER names them", guide.name, variable)
			continue
		}
		for _, block := range blocksOf(t, guide.name) {
			if block.NotRun != "" {
				t.Logf("%s:%d: not run: %s", guide.name, block.Line, block.NotRun)
				continue
			}
			started := time.Now()
			out, err := reader.command("bash", "-c", block.Executable()).CombinedOutput()
			if err != nil {
				t.Fatalf("%s:%d: %v\n%s\n%s", guide.name, block.Line, err, block.Script, out)
			}
			t.Logf("%s:%d: ok (%.1f s)", guide.name, block.Line, time.Since(started).Seconds())
		}
	}
}

// TestGuidesRunNearlyEverything keeps the exceptions few.
func TestGuidesRunNearlyEverything(t *testing.T) {
	for _, guide := range guides {
		var run, notRun int
		for _, block := range blocksOf(t, guide.name) {
			if block.NotRun == "" {
				run++
			} else {
				notRun++
			}
		}
		if run < guide.run || notRun > 2 {
			t.Errorf("%s: %d blocks are run and %d are not; want at least %d, and at most 2", guide.name, run, notRun, guide.run)
		}
	}
}

// TestMakeTargetsExist covers the blocks that take too long to run.
func TestMakeTargetsExist(t *testing.T) {
	makefile := read(t, "Makefile")
	called := regexp.MustCompile("(?m)(?:^|`)make ([a-z-]+)")
	found := 0
	for _, name := range documents(t) {
		for _, m := range called.FindAllStringSubmatch(read(t, name), -1) {
			found++
			if !strings.Contains(makefile, "\n"+m[1]+": ") {
				t.Errorf("%s: the Makefile has no target %q", name, m[1])
			}
		}
	}
	if found < 3 {
		t.Errorf("only %d make commands were found", found)
	}
}

// TestLinksLeadSomewhere checks every relative link and picture.
func TestLinksLeadSomewhere(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#\s]+)(?:#[^)]*)?\)|(?:src|srcset)="([^"]+)"`)
	found := 0
	for _, name := range documents(t) {
		for _, m := range link.FindAllStringSubmatch(read(t, name), -1) {
			target := m[1] + m[2]
			if strings.Contains(target, "://") {
				continue
			}
			found++
			path := filepath.Join(root, filepath.Dir(name), target)
			if _, err := os.Stat(path); err != nil {
				t.Errorf("%s: the link %s leads nowhere", name, target)
			}
		}
	}
	if found < 10 {
		t.Errorf("only %d links were found", found)
	}
}

// TestEveryDecisionIsListed keeps the index of docs/decisions complete.
func TestEveryDecisionIsListed(t *testing.T) {
	index := read(t, "docs/decisions/README.md")
	files, err := filepath.Glob(filepath.Join(root, "docs/decisions/[0-9]*.md"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no decisions found: %v", err)
	}
	for _, file := range files {
		if name := filepath.Base(file); !strings.Contains(index, "("+name+")") {
			t.Errorf("docs/decisions/README.md does not list %s", name)
		}
	}
}

// TestEveryDependencyIsExplained compares go.mod with docs/dependencies.md.
func TestEveryDependencyIsExplained(t *testing.T) {
	text := read(t, "docs/dependencies.md")
	direct := regexp.MustCompile(`(?m)^\t(\S+) (v\S+)$`).FindAllStringSubmatch(read(t, "go.mod"), -1)
	if len(direct) < 5 {
		t.Fatalf("only %d direct dependencies were found in go.mod", len(direct))
	}
	for _, m := range direct {
		if !strings.Contains(text, "`"+m[1]+"` | "+m[2]+" ") {
			t.Errorf("docs/dependencies.md does not explain %s %s", m[1], m[2])
		}
	}
}

// TestEveryRuntimeIsListed compares the tour's table with the runtimes.
func TestEveryRuntimeIsListed(t *testing.T) {
	tour := read(t, "docs/tour.md")
	for _, runtime := range runtimes.All() {
		if !strings.Contains(tour, fmt.Sprintf("\n| `%s` ", runtime.Name())) {
			t.Errorf("docs/tour.md has no row for the runtime %s", runtime.Name())
		}
	}
}

// TestReadmeShowsTheExample compares the README's chain with the file that it
// names, ignoring layout.
func TestReadmeShowsTheExample(t *testing.T) {
	_, rest, ok := strings.Cut(read(t, "README.md"), fence+"yaml\n")
	shown, _, ok2 := strings.Cut(rest, fence)
	if !ok || !ok2 {
		t.Fatal("README.md shows no chain")
	}
	const name = "examples/f1-split.yaml"
	if got, want := parsed(t, "README.md", shown), parsed(t, name, read(t, name)); got != want {
		t.Errorf("README.md shows\n%s\nwhich is not %s:\n%s", got, name, want)
	}
}

// parsed is a chain file without its layout.
func parsed(t *testing.T, name, text string) string {
	t.Helper()
	c, err := chain.Parse(name, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// reader is a person who follows a guide.
type reader struct {
	dir string // their copy of the repository
	env []string
}

func newReader(t *testing.T) *reader {
	t.Helper()
	dir := t.TempDir()
	copyRepository(t, dir)
	build := exec.Command("make", "--no-print-directory", "build")
	build.Dir = dir
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("make build: %v\n%s", err, out)
	}
	state, err := os.MkdirTemp("/run", "dray-test-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(state, 0o711); err != nil {
		t.Fatal(err)
	}
	r := &reader{dir: dir, env: append(os.Environ(), "DRAY_STATE="+state, "PATH="+filepath.Join(dir, "bin")+":"+os.Getenv("PATH"))}
	t.Cleanup(func() { r.leave(t, state) })
	return r
}

// copyRepository copies all files that git tracks, or would with the next commit.
func copyRepository(t *testing.T, to string) {
	t.Helper()
	list := exec.Command("git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	list.Dir = root
	names, err := list.Output()
	if err != nil {
		t.Fatalf("git ls-files: %v", err)
	}
	for _, name := range strings.Split(strings.TrimRight(string(names), "\x00"), "\x00") {
		err := copyFile(filepath.Join(root, name), filepath.Join(to, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // that one is removed but not committed
			t.Fatal(err)
		}
	}
}

// copyFile copies a file with its mode, or a symbolic link as such.
func copyFile(from, to string) error {
	info, err := os.Lstat(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	if info.Mode().Type() == fs.ModeSymlink {
		target, err := os.Readlink(from)
		if err != nil {
			return err
		}
		return os.Symlink(target, to)
	}
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, content, info.Mode().Perm())
}

func (r *reader) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Dir = r.dir
	cmd.Env = r.env
	return cmd
}

// leave takes down what a failed block left running.
func (r *reader) leave(t *testing.T, state string) {
	entries, err := os.ReadDir(state)
	if err != nil {
		t.Error(err)
	}
	script := `for chain in "$@"; do dray down "$chain" || true; done; dray gc`
	args := []string{"-c", script, "bash"}
	for _, e := range entries {
		if e.IsDir() {
			args = append(args, e.Name())
		}
	}
	if out, err := r.command("bash", args...).CombinedOutput(); err != nil {
		t.Errorf("clean-up: %v\n%s", err, out)
		return // the remaining files show why
	}
	if err := os.RemoveAll(state); err != nil {
		t.Error(err)
	}
}

func blocksOf(t *testing.T, name string) []Block {
	t.Helper()
	blocks, err := Blocks(read(t, name))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return blocks
}

func read(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// documents are the repository's Markdown files, by their path within it.
func documents(t *testing.T) []string {
	t.Helper()
	var names []string
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/decisions/*.md"} {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			names = append(names, strings.TrimPrefix(file, root+"/"))
		}
	}
	if len(names) < 5 {
		t.Fatalf("only %d documents were found", len(names))
	}
	return names
}
