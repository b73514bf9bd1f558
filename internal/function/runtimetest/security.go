// SPDX-License-Identifier: Apache-2.0

package runtimetest

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drayage/dray/internal/function/runtime"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/test/testenv"
)

// Security shows that the function's command cannot do what each probe tries.
// Each probe first succeeds without protection: on the host, or in a function of
// the unprotected runtime if it needs an interface. Probes in except are skipped:
// this runtime does not promise them.
func Security(t *testing.T, c Config, unprotected runtime.Runtime, except ...string) {
	target := newTarget(t, c)
	open := Up(t, unprotected, chain.Function{Name: "open"})
	plumb(t, open)
	f := Up(t, c.Runtime, c.function(t))
	plumb(t, f)
	skip := map[string]bool{}
	for _, name := range except {
		skip[name] = true
	}
	var tried []probe
	var scripts []string
	for _, p := range probes {
		if skip[p.name] {
			delete(skip, p.name)
			continue
		}
		tried = append(tried, p)
		scripts = append(scripts, perlPrologue+p.script(target))
	}
	outcomes := f.runAll(scripts)
	for i, p := range tried {
		t.Run(strings.ReplaceAll(p.name, " ", "-"), func(t *testing.T) {
			var unprotected string
			if p.inFunction {
				unprotected, _ = open.Output("perl", "-e", scripts[i])
			} else {
				unprotected = onHost(t, scripts[i])
			}
			if strings.HasPrefix(unprotected, "unsupported") {
				t.Skipf("this kernel cannot: %s", unprotected)
			}
			if unprotected != "yes\n" {
				t.Fatalf("without protection the probe does not succeed, so it proves nothing: %s", unprotected)
			}
			if out := outcomes[i]; !strings.HasPrefix(out, "no: ") && !strings.HasPrefix(out, "unsupported: ") {
				t.Errorf("the function can: %s", out)
			}
		})
	}
	for name := range skip {
		t.Errorf("there is no probe %q", name)
	}
	t.Run("reach-only-its-own-ports", func(t *testing.T) { testOwnPorts(t, c) })
	t.Run("reach-only-its-own-links", func(t *testing.T) { testOwnLinks(t, c) })
	t.Run("give-no-ring-to-a-packet-socket", func(t *testing.T) { testRings(t, c) })
	t.Run("exceed-no-huge-pages", func(t *testing.T) { testHugePageProbe(t, c) })
}

// runAll runs each script in its own perl, in one run of the function.
func (f *Function) runAll(scripts []string) []string {
	f.T.Helper()
	const each = `$| = 1; for (@ARGV) { system "perl", "-e", $_; print "\0" }`
	out, code := f.Output(append([]string{"perl", "-e", each}, scripts...)...)
	outcomes := strings.Split(out, "\x00")
	if code != 0 || len(outcomes) != len(scripts)+1 {
		f.T.Fatalf("%d scripts, %d outcomes, status %d: %s", len(scripts), len(outcomes)-1, code, out)
	}
	return outcomes
}

func onHost(t *testing.T, script string) string {
	t.Helper()
	out, err := exec.Command("perl", "-e", script).CombinedOutput()
	if err != nil {
		t.Fatalf("on the host: %v: %s", err, out)
	}
	return string(out)
}

// target is what probes aim at: resources of the host and of a neighbour.
type target struct {
	pid      int    // of a neighbour's process, in the host's numbering
	address  string // of the secret in its memory
	secret   string
	socket   string // path of a listening socket in the state directory
	abstract string // name of a listening abstract socket of the host
	openDir  string // a world-writable directory on the host's root
	home     string // a world-readable directory below /home
}

const secret = "dray-secret-of-the-neighbour"

func newTarget(t *testing.T, c Config) target {
	t.Helper()
	fn := c.function(t)
	fn.Name = "neighbour"
	f := Up(t, c.Runtime, fn)
	r := f.Start("perl", "-e", `$| = 1; my $s = join "-", qw(dray secret of the neighbour); printf "at %d\n", unpack("J", pack("p", $s)); sleep 1000`)
	r.Await("\n")
	base := filepath.Dir(f.Spec.Dir)
	tg := target{pid: r.ID().PID, secret: secret, socket: filepath.Join(base, "sock"), abstract: f.Spec.Chain}
	tg.address = strings.TrimSpace(strings.TrimPrefix(r.Out.String(), "at "))
	for _, address := range []string{tg.socket, "@" + tg.abstract} {
		l, err := net.Listen("unix", address)
		testenv.Must(t, err)
		t.Cleanup(func() { l.Close() })
	}
	tg.openDir, tg.home = filepath.Join("/var/lib", f.Spec.Chain), filepath.Join("/home", f.Spec.Chain)
	for _, dir := range []string{tg.openDir, tg.home} {
		t.Cleanup(func() { os.RemoveAll(dir) })
		testenv.Must(t, os.Mkdir(dir, 0o755))
		if err := os.Chmod(dir, 0o777); err != nil { // whatever the umask
			t.Fatal(err)
		}
	}
	return tg
}

// perlPrologue ends a probe: "yes" if it succeeded, "no: why" if it was
// prevented, "unsupported: why" if the kernel lacks the feature.
const perlPrologue = `use Socket; use Errno;
sub yes { print "yes\n"; exit }
sub refused { print "no: ", (shift // $!), "\n"; exit }
sub settle { shift and yes; $!{ENOSYS} || $!{EAFNOSUPPORT} ? print("unsupported: $!\n") : print("no: $!\n"); exit }
`

// probe is one thing that a function must not be able to do.
type probe struct {
	name       string
	inFunction bool // without protection it is tried in an unprotected function, not on the host
	script     func(target) string
}

func static(script string) func(target) string { return func(target) string { return script } }

func scriptf(format string, args func(target) []any) func(target) string {
	return func(t target) string { return fmt.Sprintf(format, args(t)...) }
}
