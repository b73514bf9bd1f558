// SPDX-License-Identifier: Apache-2.0

package runc_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/drayage/dray/internal/function/process"
	"github.com/drayage/dray/internal/function/runc"
	"github.com/drayage/dray/internal/function/runtime"
	"github.com/drayage/dray/internal/function/runtimetest"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/test/testenv"
)

// ways sets PACKET_RX_RING on a UDP socket by a system call of another ABI, or opens
// a socket to the hypervisor. ENOPROTOOPT (92) shows that the call came through.
const ways = `
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static int call32(long number, long a, long b, long c, long d, long e)
{
	long result;
	__asm__ volatile("int $0x80" : "=a"(result) : "a"(number), "b"(a), "c"(b), "d"(c), "S"(d), "D"(e)
			 : "memory", "r8", "r9", "r10", "r11");
	return (int)result;
}

int main(int argc, char **argv)
{
	unsigned *low = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	int fd = socket(AF_INET, SOCK_DGRAM, 0), result = 0;
	unsigned option[] = {fd, 263, 5, (unsigned)(unsigned long)(low + 64), 16}, vsock[] = {40, 1, 0};

	memcpy(low, option, sizeof(option));
	memcpy(low + 32, vsock, sizeof(vsock));
	if (!strcmp(argv[1], "getpid"))
		result = call32(20, 0, 0, 0, 0, 0) == getpid();
	if (!strcmp(argv[1], "socketcall"))
		result = call32(102, 14, (long)low, 0, 0, 0);
	if (!strcmp(argv[1], "setsockopt"))
		result = call32(366, fd, 263, 5, (long)(low + 64), 16);
	if (!strcmp(argv[1], "vsock"))
		result = call32(102, 1, (long)(low + 32), 0, 0, 0);
	if (!strcmp(argv[1], "x32"))
		result = syscall(0x40000000 + 541, fd, 263, 5, low + 64, 16) < 0 ? -errno : 0;
	if (!strcmp(argv[1], "alias"))
		result = syscall(0x40000000 + 54, fd, 263, 5, low + 64, 16) < 0 ? -errno : 0;
	printf("%s %d\n", argv[1], result);
	return 0;
}
`

// TestNoRingByOtherABIs: the filter compares a call's number and arguments, and each
// ABI of the processor has its own.
func TestNoRingByOtherABIs(t *testing.T) {
	needRunc(t)
	testenv.Program(t, "gcc")
	if goruntime.GOARCH != "amd64" {
		t.Skip("a test of the ABIs of x86-64")
	}
	dir, err := os.MkdirTemp("/var/lib", "dray-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	source, program := filepath.Join(dir, "ways.c"), filepath.Join(dir, "ways")
	if err := os.WriteFile(source, []byte(ways), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("gcc", "-static", "-o", program, source).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	census := func(rt runtime.Runtime) string {
		const each = `for way in getpid socketcall setsockopt vsock x32 alias; do "$0" $way || echo $way: $?; done 2>/dev/null`
		out, _ := runtimetest.Up(t, rt, chain.Function{}).Output("sh", "-c", each, program)
		return out
	}
	open := census(process.New())
	if !strings.HasPrefix(open, "getpid 1\n") {
		t.Skipf("this kernel has no 32-bit system calls: %s", open)
	}
	if !strings.Contains(open, "socketcall -92\nsetsockopt -92\n") {
		t.Fatalf("without protection the calls do not come through, so the test proves nothing:\n%s", open)
	}
	const killed = 128 + int(syscall.SIGSYS)
	want := fmt.Sprintf("getpid: %[1]d\nsocketcall: %[1]d\nsetsockopt: %[1]d\nvsock: %[1]d\nx32: %[1]d\nalias: %[1]d\n", killed)
	if got := census(runc.New()); got != want {
		t.Errorf("with protection:\n%s", got)
	}
}
