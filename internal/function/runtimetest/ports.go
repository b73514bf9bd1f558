// SPDX-License-Identifier: Apache-2.0

package runtimetest

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/function/runtime"
	"github.com/drayage/dray/internal/spec/chain"
)

// withNativePort adds a port that libdray opens.
func withNativePort(fn chain.Function) chain.Function {
	fn.Ports = []chain.Port{{Name: "f1u", Face: chain.FaceNative}}
	return fn
}

// serve acts as the broker: it listens on the function's port and tells each
// client whose port it is.
func serve(f *Function) (path string) {
	f.T.Helper()
	return listen(f, func(conn *net.UnixConn) { fmt.Fprint(conn, "port of "+f.Spec.Function.Name) })
}

// listen listens on the function's port, and answers each client.
func listen(f *Function, answer func(*net.UnixConn)) (path string) {
	f.T.Helper()
	path = filepath.Join(f.Sandbox.Ports, "f1u")
	l, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: path, Net: "unixpacket"})
	if err != nil {
		f.T.Fatal(err)
	}
	f.T.Cleanup(func() { l.Close() })
	if err := os.Chmod(path, 0o600); err != nil {
		f.T.Fatal(err)
	}
	if err := os.Chown(path, f.Sandbox.PortsUser, -1); err != nil {
		f.T.Fatal(err)
	}
	go func() {
		for {
			conn, err := l.AcceptUnix()
			if err != nil {
				return
			}
			answer(conn)
			conn.Close()
		}
	}()
	return path
}

// ask prints what the port at a path sends.
func ask(path string) string {
	return fmt.Sprintf(perlPrologue+`socket my $s, AF_UNIX, %d, 0 or refused;
		connect($s, pack_sockaddr_un(%s)) or refused; sysread $s, my $b, 99; print "$b\n"`, unix.SOCK_SEQPACKET, path)
}

// ownPort is the path at which libdray looks for the port.
const ownPort = `(($ENV{DRAY_PORTS} // "` + runtime.PortsInside + `") . "/f1u")`

func testNoPorts(t *testing.T, c Config) {
	f := Up(t, c.Runtime, c.function(t))
	if _, err := os.Stat(f.Spec.PortsDir()); f.Sandbox.Ports != "" || !os.IsNotExist(err) {
		t.Errorf("the function has no native port, but the directory %q (%v)", f.Sandbox.Ports, err)
	}
}

func testPorts(t *testing.T, c Config) {
	f := Up(t, c.Runtime, withNativePort(c.function(t)))
	var st unix.Stat_t
	if err := unix.Stat(f.Sandbox.Ports, &st); err != nil || st.Uid != uint32(os.Geteuid()) || st.Mode&0o777 != 0o755 {
		t.Fatalf("directory %s: %+v, %v", f.Sandbox.Ports, st, err)
	}
	serve(f)
	if c.External {
		return
	}
	const want = "port of du\n"
	if got, code := f.Output("perl", "-e", ask(ownPort)); got != want || code != 0 {
		t.Errorf("the command read %q from its port, status %d", got, code)
	}
	r := f.Start("sleep", "1000")
	if got, code := f.Exec("", "perl", "-e", ask(ownPort)); got != want || code != 0 {
		t.Errorf("a second program read %q from its port, status %d", got, code)
	}
	if err := r.Stop(cancelled()); err != nil { // at once, by killing it
		t.Error(err)
	}
}

// testOwnPorts shows that a function reaches only its own ports.
func testOwnPorts(t *testing.T, c Config) {
	fn := c.function(t)
	fn.Name = "neighbour"
	neighbour := Up(t, c.Runtime, withNativePort(fn))
	theirs := serve(neighbour)
	f := Up(t, c.Runtime, withNativePort(c.function(t)))
	ours := serve(f)
	for _, path := range []string{theirs, ours} {
		if got := onHost(t, ask(`"`+path+`"`)); !strings.HasPrefix(got, "port of ") {
			t.Fatalf("without protection the probe does not succeed, so it proves nothing: %s", got)
		}
	}
	dir := `"` + runtime.PortsInside + `"`
	got := f.runAll([]string{
		ask(ownPort),
		ask(`"` + theirs + `"`),
		`print join(" ", map { s{.*/}{}r } glob(` + dir + ` . "/*")), "\n"`,
		`open(my $f, ">", ` + dir + ` . "/mine") ? print "yes\n" : print "no: $!\n"`,
		`unlink(` + dir + ` . "/f1u") ? print "yes\n" : print "no: $!\n"`,
		`rename(` + dir + ` . "/f1u", ` + dir + ` . "/f2u") ? print "yes\n" : print "no: $!\n"`,
	})
	for i, want := range []string{"port of du\n", "no: ", "f1u\n", "no: ", "no: ", "no: "} {
		if want != got[i] && (want != "no: " || !strings.HasPrefix(got[i], want)) {
			t.Errorf("probe %d: %q, want %q", i, got[i], want)
		}
	}
}
