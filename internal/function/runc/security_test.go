// SPDX-License-Identifier: Apache-2.0

package runc_test

import (
	"fmt"
	goruntime "runtime"
	"testing"

	"github.com/drayage/dray/internal/function/process"
	"github.com/drayage/dray/internal/function/runc"
	"github.com/drayage/dray/internal/function/runtimetest"
	"github.com/drayage/dray/internal/spec/chain"
)

func TestSecurity(t *testing.T) {
	needRunc(t)
	runtimetest.Security(t, runtimetest.Config{Runtime: runc.New()}, process.New())
}

// cpuCensus counts CPUs in each way that programs use.
const cpuCensus = `
echo cpuinfo $(grep -c ^processor /proc/cpuinfo)
echo directories $(ls -d /sys/devices/system/cpu/cpu[0-9]* | wc -l)
for f in online present possible; do echo $f $(cat /sys/devices/system/cpu/$f); done
echo nodes $(cat /sys/devices/system/node/node*/cpulist)
echo siblings $(cat /sys/devices/system/cpu/cpu[0-9]*/topology/package_cpus_list | sort -u)
echo conf $(getconf _NPROCESSORS_CONF) $(getconf _NPROCESSORS_ONLN)
`

func TestOnlyGrantedCPUsAreVisible(t *testing.T) {
	needRunc(t)
	all := goruntime.NumCPU()
	if all < 2 {
		t.Skip("needs two CPUs: with one there is none to hide")
	}
	census := func(n int, list string) string {
		return fmt.Sprintf("cpuinfo %d\ndirectories %d\nonline %s\npresent %s\npossible %s\nnodes %s\nsiblings %s\nconf %d %d\n", n, n, list, list, list, list, list, n, n)
	}
	last := all - 1
	fn := chain.Function{CPUs: chain.CPURequest{Set: []int{last}}}
	leaky, _ := runtimetest.Up(t, process.New(), fn).Output("sh", "-c", cpuCensus)
	if leaky == census(1, fmt.Sprint(last)) {
		t.Fatal("a cpuset alone hides the other CPUs, so the test proves nothing")
	}
	f := runtimetest.Up(t, runc.New(), fn)
	if got, _ := f.Output("sh", "-c", cpuCensus); got != census(1, fmt.Sprint(last)) {
		t.Errorf("with CPU %d the function sees:\n%s", last, got)
	}
	if got, _ := f.Output("sh", "-c", "echo 1 > /sys/devices/system/cpu/online"); got == "" {
		t.Error("the prepared copy can be written to")
	}
}
