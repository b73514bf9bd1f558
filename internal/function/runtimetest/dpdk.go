// SPDX-License-Identifier: Apache-2.0

package runtimetest

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/function/runtime"
	"github.com/drayage/dray/internal/host/step"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/dpdk"
	"github.com/drayage/dray/test/testenv"
)

// withDpdkPort adds a port that is a device of the function's own DPDK.
func withDpdkPort(fn chain.Function) chain.Function {
	fn.Ports = []chain.Port{{Name: "n3", Face: chain.FaceDPDK}}
	return fn
}

// link acts like a transport whose device listens on a socket.
func link(f *Function) {
	f.Spec.Vdevs = []dpdk.Vdev{{
		Function: f.Spec.Function.Name, Port: "n3", Driver: dpdk.NetVirtioUser,
		Options: "path={dir}/vhost.sock,server=1", Dir: f.Spec.LinkDir("n3"), SingleFileSegments: true,
	}}
}

// linkDir is where the function's program sees the directory of its port.
func linkDir(f *Function) string {
	if f.Runtime.Name() == chain.RuntimeProcess {
		return f.Spec.LinkDir("n3")
	}
	return filepath.Join(dpdk.LinksInside, "n3")
}

// testDpdk checks the arguments that a program with a dpdk port gets, and that it
// can make its socket, again after it was killed.
func testDpdk(t *testing.T, c Config) {
	fn := withDpdkPort(c.function(t))
	fn.Memory = 256 << 20
	f := Up(t, c.Runtime, fn)
	link(f)
	var st unix.Stat_t
	if err := unix.Stat(f.Spec.LinkDir("n3"), &st); err != nil || st.Uid != uint32(f.Sandbox.PortsUser) || st.Mode&0o777 != 0o700 {
		t.Fatalf("directory %s: %+v, %v", f.Spec.LinkDir("n3"), st, err)
	}
	const script = `use Socket; print join(" ", @ARGV) eq $ENV{DRAY_EAL} ? "told twice\n" : "told differently\n";
		print "$ARGV[-1]\n"; my ($path) = $ARGV[-1] =~ /path=([^,]*)/;
		my $s; socket($s, AF_UNIX, SOCK_STREAM, 0) && bind($s, pack_sockaddr_un($path)) && listen($s, 1) or print "cannot: $!\n";
		mkdir "$ENV{RUNTIME_DIRECTORY}/dpdk" or -d "$ENV{RUNTIME_DIRECTORY}/dpdk" or print "cannot keep files: $!\n";
		$| = 1; print "listening\n"; sleep 1000`
	want := fmt.Sprintf("told twice\nnet_virtio_user0,path=%s/vhost.sock,server=1\nlistening\n", linkDir(f))
	for range 2 {
		r := f.Start("perl", "-e", script, "--", dpdk.Argument)
		r.Await("listening\n")
		if got := r.Out.String() + r.Err.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		client, err := net.Dial("unix", filepath.Join(f.Spec.LinkDir("n3"), "vhost.sock"))
		if err != nil {
			t.Errorf("from the host: %v", err)
		} else {
			client.Close()
		}
		if err := r.Stop(cancelled()); err != nil { // at once, by killing it: the socket stays
			t.Error(err)
		}
	}
	if got, code := f.Output("echo", dpdk.Argument); code != 0 || !strings.Contains(got, "--no-huge --no-shconf -m 192 --single-file-segments") {
		t.Errorf("memory of 256Mi gives %q, status %d", got, code)
	}
}

// testSmallLinks fills the directory of a port, with bytes and with files: it holds
// next to nothing, and goes with the function.
func testSmallLinks(t *testing.T, c Config) {
	f := Up(t, c.Runtime, withDpdkPort(c.function(t)))
	link(f)
	const fill = `my $d = $ARGV[0]; my ($bytes, $files) = (0, 0); $_ = "x" x 65536;
		open my $f, ">", "$d/big" or die; while ($bytes < 32 << 20) { my $n = syswrite $f, $_ or last; $bytes += $n } unlink "$d/big";
		while ($files < 5000) { open my $f, ">", "$d/file$files" or last; $files++ } print "$bytes $files\n"`
	out, code := f.Output("perl", "-e", fill, linkDir(f))
	var bytes, files int
	if _, err := fmt.Sscan(out, &bytes, &files); err != nil || code != 0 {
		t.Fatalf("%q, status %d: %v", out, code, err)
	}
	t.Logf("measured: the function wrote %d bytes, and %d files, to the directory of its port", bytes, files)
	if bytes > 1<<20 || files > 100 || files == 0 {
		t.Errorf("a function can keep %d bytes, and %d files, in the directory of its port", bytes, files)
	}
	f.Remove()
	f.NothingLeft()
	failed := New(t, c.Runtime, withDpdkPort(c.function(t)))
	err := failed.Up(func(s step.Step, p step.Phase) error {
		if p == step.After && strings.Contains(s.Name, "directories of dpdk ports") {
			return errInjected
		}
		return nil
	})
	if !errors.Is(err, errInjected) {
		t.Errorf("error %v", err)
	}
	failed.NothingLeft()
}

// testOwnLinks shows that a function reaches its own port's directory, no
// neighbour's, and no driver that it could change.
func testOwnLinks(t *testing.T, c Config) {
	fn := c.function(t)
	fn.Name = "neighbour"
	neighbour := Up(t, c.Runtime, withDpdkPort(fn))
	theirs := filepath.Join(neighbour.Spec.LinkDir("n3"), "vhost.sock")
	f := Up(t, c.Runtime, withDpdkPort(c.function(t)))
	link(f)
	l, err := net.Listen("unix", theirs)
	testenv.Must(t, err)
	t.Cleanup(func() { l.Close() })
	testenv.Must(t, os.Chmod(theirs, 0o777))
	connect := func(path string) string {
		return fmt.Sprintf(perlPrologue+`socket my $s, AF_UNIX, SOCK_STREAM, 0 or refused; connect($s, pack_sockaddr_un("%s")) or refused; yes`, path)
	}
	write := func(path string) string {
		return perlPrologue + fmt.Sprintf(`open(my $f, ">", "%s") or refused; yes`, path)
	}
	probes := []string{connect(theirs), write(filepath.Join(filepath.Dir(theirs), "mine"))}
	for _, p := range probes {
		if got := onHost(t, p); got != "yes\n" {
			t.Fatalf("without protection the probe does not succeed, so it proves nothing: %s", got)
		}
	}
	own := []string{write(filepath.Join(linkDir(f), "mine")), write(filepath.Join(runtime.PortsInside, "mine"))}
	got := f.runAll(append(probes, own...))
	for i, want := range []string{"no: ", "no: ", "yes\n"} {
		if !strings.HasPrefix(got[i], want) {
			t.Errorf("probe %d: %q, want %q", i, got[i], want)
		}
	}
	if !strings.HasPrefix(got[3], "no: ") {
		t.Errorf("the function can make files next to its ports' sockets: %q", got[3])
	}
}
