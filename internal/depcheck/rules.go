// SPDX-License-Identifier: Apache-2.0

package depcheck

// Module is the path of the module that Repository speaks of.
const Module = "github.com/drayage/dray"

// Sets of packages that several layers share.
var (
	nouns   = []string{"internal/chain", "internal/inventory", "internal/plan"}
	numbers = []string{"internal/record", "internal/stats", "internal/verdict"}
	// drivers stand on the interface that they implement and on the kernel.
	drivers = []string{"internal/chain", "internal/inventory", "internal/dpdk", "internal/step", "internal/host"}
)

// Repository is the direction of dependencies in this module.
var Repository = Rules{
	Module: Module,
	Layers: []Layer{
		{"internal/chain", nil},
		{"internal/chain/refgen", []string{"internal/chain"}},
		{"internal/inventory", nil},
		{"internal/dpdk", []string{"internal/chain", "internal/inventory"}},
		{"internal/step", nil},
		{"internal/record", nil},
		{"internal/search", nil},
		{"internal/plan", []string{"internal/chain", "internal/inventory"}},
		{"internal/stats", []string{"internal/record"}},
		{"internal/verdict", with(nouns, "internal/record", "internal/stats")},
		{"internal/calibrate", []string{"internal/inventory", "internal/record", "internal/stats"}},
		{"internal/report", with(nouns, with(numbers, "internal/report/plot")...)},
		{"internal/compare", with(numbers, "internal/report")},
		{"internal/report/plot", []string{"internal/record", "internal/stats"}},
		{"internal/host", []string{"internal/inventory", "internal/step"}},
		{"internal/host/leftover", []string{"internal/host"}},
		{"internal/oci", []string{"internal/host"}},
		{"internal/engine", []string{"internal/step", "internal/host", "internal/oci"}},
		{"internal/guest", []string{"internal/inventory", "internal/host", "internal/guest/inside", "internal/guest/wire"}},
		{"internal/guest/inside", []string{"internal/guest/wire"}},
		{"internal/guest/contained", []string{"internal/chain", "internal/host", "internal/guest/inside", "internal/guest/wire", "internal/runtime", "internal/runtime/runc"}},
		{"internal/guest/wire", nil},
		{"internal/lab", []string{"internal/inventory", "internal/host", "internal/guest", "internal/guest/wire"}},
		{"internal/transport", drivers},
		{"internal/transport/...", with(drivers, "internal/transport")},
		{"internal/transport/native", with(drivers, "internal/transport", "internal/broker")},
		{"internal/transport/shm", with(drivers, "internal/transport", "internal/transport/native", "internal/broker")},
		{"internal/transport/vhost", with(drivers, "internal/transport", "internal/engine")},
		{"internal/transport/vhostuser", with(drivers, "internal/transport", "internal/engine", "internal/transport/vhost")},
		{"internal/transport/ovs", with(drivers, "internal/transport", "internal/transport/ovsvxlan")},
		{"internal/transport/ovsdpdk", with(drivers, "internal/transport", "internal/engine", "internal/transport/ovsvxlan", "internal/transport/vhost", "internal/transport/native", "internal/broker")},
		{"internal/transport/vpp", with(drivers, "internal/transport", "internal/engine", "internal/transport/vhost")},
		{"internal/transport/transporttest", with(drivers, "internal/transport", "internal/broker", "internal/underlay", "internal/testenv")},
		{"internal/underlay", with(drivers, "internal/transport")},
		{"internal/transport/all", []string{"internal/transport/..."}},
		{"internal/runtime", drivers},
		{"internal/runtime/...", with(drivers, "internal/runtime", "internal/runtime/child", "internal/runtime/dockercli")},
		{"internal/runtime/runc", with(drivers, "internal/runtime", "internal/runtime/child", "internal/oci")},
		{"internal/runtime/vm", with(drivers, "internal/runtime", "internal/runtime/child", "internal/guest", "internal/guest/wire")},
		{"internal/runtime/docker/dockertest/...", with(drivers, "internal/runtime/docker", "internal/runtime/dockercli", "internal/testenv")},
		{"internal/runtime/runtimetest", with(drivers, "internal/runtime", "internal/testenv")},
		{"internal/runtime/all", []string{"internal/runtime/..."}},
		{"internal/instrument/...", []string{"internal/chain", "internal/dpdk", "internal/guest", "internal/guest/wire", "internal/inventory", "internal/record", "internal/host"}},
		{"internal/trial", []string{"internal/inventory", "internal/record", "internal/search", "internal/host", "internal/instrument/..."}},
		{"internal/verify", with(nouns, with(numbers, "internal/dpdk", "internal/guest", "internal/host", "internal/instrument/...", "internal/trial", "internal/transport", "internal/runtime")...)},
		{"internal/doctor", with(nouns, "internal/record", "internal/dpdk", "internal/host", "internal/instrument/...", "internal/transport", "internal/runtime")},
		{"internal/broker", []string{"internal/inventory", "internal/host", "internal/broker/wire"}},
		{"internal/broker/wire", nil},
		{"internal/capture", []string{"internal/broker/wire", "internal/host"}},
		{"internal/node", with(nouns, "internal/broker", "internal/dpdk", "internal/step", "internal/host", "internal/transport", "internal/runtime", "internal/underlay")},
		{"internal/session", []string{"internal/record"}},
		{"internal/bench", with(nouns, with(numbers, "internal/session", "internal/guest", "internal/host", "internal/instrument/...", "internal/node", "internal/report", "internal/runtime", "internal/search", "internal/trial", "internal/verify")...)},
		{"internal/experiment", with(nouns, with(numbers, "internal/session", "internal/bench", "internal/guest", "internal/host", "internal/image", "internal/instrument/...", "internal/node", "internal/report", "internal/runtime", "internal/trial", "internal/verify", "internal/testenv")...)},
		{"experiments", []string{"internal/chain"}},
		{"images", nil},
		{"internal/image", []string{"images", "internal/host", "internal/testenv"}},
		{"internal/telemetry", with(nouns, with(numbers, "internal/broker")...)},
		{"cmd/...", []string{"internal/...", "experiments", "images"}},
		{"internal/testenv", []string{"internal/inventory", "internal/host/leftover"}},
		{"internal/depcheck", nil},
		{"test/...", []string{"internal/..."}},
	},
	Imports: []Guard{
		{"github.com/vishvananda/netlink", onlyHost, "network links are made in one place"},
		{"github.com/vishvananda/netns", onlyHost, "namespaces are entered in one place"},
		{"github.com/opencontainers/cgroups", onlyHost, "both cgroup versions are known in one place"},
		{"github.com/moby/sys/mountinfo", onlyHost, "mounts are made in one place"},
		{"golang.org/x/sys/unix", kernel, "the rest stays portable and testable without a kernel"},
		{"syscall", with(kernel, "cmd/...", "internal/testenv"), "the rest stays portable and testable without a kernel"},
		{"go.yaml.in/yaml/v3", []string{"internal/chain"}, "chain files are parsed in one place"},
		{"github.com/HdrHistogram/hdrhistogram-go", []string{"internal/record", "internal/stats", "internal/instrument/..."}, "histograms are stored and merged in one way"},
		{"gonum.org/v1/gonum", []string{"internal/stats"}, "inference happens in one place"},
		{"gopkg.in/natefinch/lumberjack.v2", []string{"internal/node"}, "it rotates the logs of functions"},
		{"github.com/opencontainers/runtime-spec", []string{"internal/runtime/...", "internal/engine"}, "it describes a bundle for runc"},
		{"github.com/moby/profiles/seccomp", []string{"internal/runtime/...", "internal/engine"}, "it is the profile of a container"},
		{"github.com/prometheus/client_golang", []string{"internal/telemetry", "cmd/..."}, "metrics are made in one place, and served by a program"},
		{"github.com/prometheus/common", []string{"internal/telemetry", "cmd/..."}, "metrics are made in one place, and served by a program"},
		{"github.com/spf13/cobra", []string{"cmd/..."}, "only programs have a command line"},
		{"golang.org/x/term", []string{"cmd/..."}, "only programs have a terminal"},
	},
	Calls: kernelCalls,
}

var (
	onlyHost = []string{"internal/host/..."}
	// kernel lists who may use system calls at all: they start, signal and
	// lock, while everything in kernelCalls stays with host.
	kernel = []string{"internal/host/...", "internal/oci", "internal/engine", "internal/transport/...", "internal/runtime/...", "internal/instrument/...", "internal/node", "internal/trial", "internal/capture", "internal/broker/...", "internal/session", "internal/guest/...", "internal/lab", "internal/image"}
)

// kernelCalls are the system calls that change the host: only host makes them.
var kernelCalls = guardCalls("only one package changes the host, and one a guest's own kernel",
	"Mount", "Unmount", "PivotRoot", "Chroot", "Setns", "Unshare", "Sethostname",
	"OpenTree", "MoveMount", "Fsopen", "Fsmount", "Mknod", "InitModule", "FinitModule")

func guardCalls(why string, names ...string) []Guard {
	var guards []Guard
	for _, name := range names {
		for _, pkg := range []string{"unix.", "syscall."} {
			guards = append(guards, Guard{pkg + name, with(onlyHost, "internal/guest/inside"), why})
		}
	}
	return guards
}

// with is a new list of both.
func with(list []string, more ...string) []string {
	return append(append([]string{}, list...), more...)
}
