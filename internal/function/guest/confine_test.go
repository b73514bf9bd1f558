// SPDX-License-Identifier: Apache-2.0

package guest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/test/testenv"
)

// secrets are host files that a function must not read, by what hides them.
func secrets(t *testing.T) map[string]string {
	t.Helper()
	dir, err := os.MkdirTemp("/var/lib", "dray-test-secrets-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	files := map[string]string{
		"by its mode": filepath.Join(dir, "mode"), "by the directory's": filepath.Join(dir, "closed/file"),
		"by its place": filepath.Join(dir, "hidden/file"),
	}
	for _, file := range files {
		testenv.Must(t, os.MkdirAll(filepath.Dir(file), 0o755))
		testenv.Must(t, os.WriteFile(file, []byte("classified\n"), 0o644))
	}
	testenv.Must(t, os.Chmod(dir, 0o755))
	testenv.Must(t, os.Chmod(files["by its mode"], 0o600))
	testenv.Must(t, os.Chmod(filepath.Dir(files["by the directory's"]), 0o700))
	return files
}

// testUnconfined shows that without confinement no host file is secret.
func testUnconfined(t *testing.T, m *Machine) {
	for how, file := range secrets(t) {
		out, code, err := run(withPatience(t), m, "", "cat", file)
		if code != 0 || out != "classified\n" || err != nil {
			t.Errorf("a file hidden %s: status %d, %q, %v", how, code, out, err)
		}
	}
}

// TestConfinedGuest boots one guest like a function's guest.
func TestConfinedGuest(t *testing.T) {
	needs(t)
	files := secrets(t)
	hidden := filepath.Dir(files["by its place"])
	shown := filepath.Join(hidden, "sub/shown")
	testenv.Must(t, os.MkdirAll(shown, 0o755))
	testenv.Must(t, os.WriteFile(filepath.Join(shown, "file"), []byte("known\n"), 0o644))
	dir := t.TempDir()
	group := host.Cgroup{Path: "/dray-test-guest/" + filepath.Base(hidden) + fmt.Sprint(os.Getpid())}
	t.Cleanup(func() {
		testenv.Must(t, host.Removers()[host.CgroupResource(group).Kind](context.Background(), host.CgroupResource(group)))
	})
	testenv.Must(t, group.Create(host.Limits{}))
	// Only root can enter the guest's directory and its parents.
	testenv.Must(t, os.Chmod(filepath.Dir(dir), 0o700))
	c := Config{
		Name: "dray-test", Dir: dir, VCPUs: 1, Detached: true, Place: host.Place{Cgroup: group},
		User: User(t.Name()), Hidden: []string{hidden, "/tmp", "/run", "/root"}, Shown: []string{shown},
	}
	m, err := Boot(withPatience(t), c)
	testenv.Must(t, err)
	t.Cleanup(m.Kill)
	for how, file := range files {
		out, code, err := run(withPatience(t), m, "", "cat", file)
		if code != 1 || strings.Contains(out, "classified") || err != nil {
			t.Errorf("a file hidden %s: status %d, %q, %v", how, code, out, err)
		}
	}
	expect(t, m, "known\n", 0, "cat", filepath.Join(shown, "file"))
	expect(t, m, "", 1, "sh", "-c", "cat /etc/shadow 2>/dev/null")
	// The guest's own files are as before.
	expect(t, m, "own\n", 0, "sh", "-c", "echo own >/etc/dray-own && echo x >/tmp/x && cat /etc/dray-own && modprobe sch_hfsc")
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", m.Process.PID))
	testenv.Must(t, err)
	for _, want := range []string{
		fmt.Sprintf("Uid:\t%d\t%[1]d\t%[1]d\t%[1]d\n", c.User), fmt.Sprintf("Gid:\t%d\t%[1]d\t%[1]d\t%[1]d\n", c.User), "Groups:\t \n",
		"CapEff:\t0000000000000000", "CapPrm:\t0000000000000000", "CapBnd:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2",
	} {
		if !strings.Contains(string(status), want) {
			t.Errorf("QEMU has not %q:\n%s", want, status)
		}
	}
}

// TestLogsAreBounded prints like a hostile guest.
func TestLogsAreBounded(t *testing.T) {
	t.Setenv(agentVariable, testenv.Built(t, AgentProgram))
	dir := t.TempDir()
	outputs, kept, err := Config{Dir: dir}.startLogs()
	testenv.Must(t, err)
	line := strings.Repeat("x", 1023) + "\n"
	for range 5 * maxLog / len(line) {
		_, err := outputs[0].WriteString(line)
		testenv.Must(t, err)
	}
	_, err = outputs[0].WriteString("the last words\n")
	testenv.Must(t, err)
	_, err = outputs[1].WriteString("said once\n")
	testenv.Must(t, err)
	for _, f := range outputs {
		f.Close()
	}
	<-kept
	entries, err := os.ReadDir(dir)
	testenv.Must(t, err)
	var sum int64
	for _, e := range entries {
		info, err := e.Info()
		testenv.Must(t, err)
		sum += info.Size()
	}
	if sum < maxLog || sum > 2*maxLog+1024 {
		t.Errorf("%d bytes are kept in %v", sum, entries)
	}
	if words := (&Machine{Dir: dir}).lastWords(); !strings.Contains(words, "the last words") || !strings.Contains(words, "said once") || len(words) > 2*endBytes {
		t.Errorf("%d bytes of last output: %.200s", len(words), words)
	}
}
