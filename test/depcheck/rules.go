// SPDX-License-Identifier: Apache-2.0

package depcheck

import "slices"

// Module is the path of the module that Repository describes.
const Module = "github.com/drayage/dray"

// Repository is the direction of dependencies in this module. Rooms are in design
// order: each may import the rooms it names and everything that those may import,
// never one above it.
var Repository = Rules{
	Module: Module,
	Rooms: []Room{
		{Path: "dataplane/iq"},
		{Path: "images", On: []string{"dataplane/iq"}},
		{Path: "internal/spec", Floors: [][]string{
			{"schema", "layout", "release", "inventory", "cpulist", "library", "sockpath"},
			{"parse"},
			{"units", "parse/parsetest"},
			{"chain"},
			{"*"},
			{"experiment"},
			{"refgen"},
		}},
		{Path: "internal/plan", On: []string{"internal/spec"}, Floors: [][]string{
			{"place"}, {"."}, {"fleet"},
		}},
		{Path: "internal/host", On: []string{"internal/spec"}, Floors: [][]string{
			{"step", "leftover", "bpf"}, {"."}, {"oci", "prepare"}, {"sidecar"},
		}},
		// Tests and the packages in TestOnly may import it, nothing else.
		{Path: "test/testenv", On: []string{"internal/host"}},
		{Path: "internal/link", On: []string{"internal/host"}, Floors: [][]string{
			{"transport", "broker/wire"},
			{"broker", "underlay", "vhost", "ovsvxlan"},
			{"native", "telemetry", "capture"},
			{"*"}, // the drivers: none knows another
			{"all", "transporttest", "telemetry/telemetrytest"},
		}},
		{Path: "internal/function", On: []string{"internal/host", "images"}, Floors: [][]string{
			{"runtime", "dockercli", "guest/wire", "image"},
			{"child", "guest/inside"},
			{"guest"},
			{"*"}, // the runtimes: none knows another
			{"all", "guest/contained", "runtimetest", "docker/dockertest"},
			{"docker/dockertest/pause"},
		}},
		{Path: "internal/node", On: []string{"internal/link", "internal/function", "internal/plan"}},
		{Path: "internal/result", On: []string{"internal/plan"}, Floors: [][]string{
			{"record"}, {"stats", "report/plot"}, {"verdict", "calibrate", "report/document"}, {"report"}, {"compare"},
		}},
		{Path: "internal/measure", On: []string{"internal/node", "internal/result"}, Floors: [][]string{
			{"search", "rundir", "microbench", "spinner"}, {"instrument"}, {"runner", "live"}, {"verify"}, {"chainrun", "trace", "bench"}, {"published"},
		}},
		{Path: "internal/cluster", On: []string{"internal/measure"}},
		{Path: "experiments", On: []string{"internal/spec"}},

		{Path: "cmd", On: []string{"internal/cluster", "experiments"}},
		{Path: "test", On: []string{"cmd"}},
	},
	// Only packages imported solely by tests may ask for test requirements.
	ForTests: []string{"test/testenv"},
	TestOnly: []string{"internal/link/transporttest", "internal/function/runtimetest", "internal/function/docker/dockertest"},
	Imports: []Guard{
		{"github.com/vishvananda/netlink", onlyHost, "network links are made in one place"},
		{"github.com/vishvananda/netns", onlyHost, "namespaces are entered in one place"},
		{"github.com/opencontainers/cgroups", onlyHost, "both cgroup versions are known in one place"},
		{"github.com/moby/sys/mountinfo", onlyHost, "mounts are made in one place"},
		{"golang.org/x/sys/unix", kernel, "the rest stays portable and testable without a kernel"},
		{"syscall", append([]string{"cmd/...", "internal/cluster", "test/bench", "test/testenv"}, kernel...), "the rest stays portable and testable without a kernel"},
		{"go.yaml.in/yaml/v3", []string{"internal/spec/..."}, "files are parsed in one room"},
		{"github.com/santhosh-tekuri/jsonschema/v6", []string{"internal/spec/parse/parsetest"}, "only tests hold files against a schema"},
		{"github.com/HdrHistogram/hdrhistogram-go", []string{"internal/result/record", "internal/result/stats", "internal/measure/instrument"}, "histograms are stored and merged in one way"},
		{"gonum.org/v1/gonum", []string{"internal/result/stats"}, "inference happens in one place"},
		{"gopkg.in/natefinch/lumberjack.v2", []string{"internal/node"}, "it rotates the logs of functions"},
		{"github.com/opencontainers/runtime-spec", bundles, "it describes a bundle for runc"},
		{"github.com/moby/profiles/seccomp", bundles, "it is the profile of a container"},
		{"github.com/prometheus/client_golang", metrics, "metrics are made in one place, and served by a program"},
		{"github.com/prometheus/common", metrics, "metrics are made in one place, and served by a program"},
		{"github.com/gopacket/gopacket", []string{"internal/link/capture"}, "it writes the files of captures"},
		{"github.com/cavaliergopher/cpio", []string{"internal/function/guest"}, "it writes a guest's initramfs"},
		{"github.com/spf13/cobra", []string{"cmd/..."}, "only programs have a command line"},
		{"golang.org/x/term", []string{"cmd/..."}, "only programs have a terminal"},
	},
	Calls: slices.Concat(kernelCalls, commands, Dumps),
}

// commands start programs that live on, or that somebody else waits for. All others run as
// a host.Helper, which has a time limit and an error that says what happened.
var commands = []Guard{
	{"exec.Command", starters, "host.Helper runs programs that answer and end"},
	{"exec.CommandContext", starters, "host.Helper runs programs that answer and end"},
	{"exec.Cmd{}", append([]string{"internal/function/process"}, starters...), "host.Helper runs programs that answer and end"},
	{"os.StartProcess", nil, "host.Helper runs programs that answer and end"},
	{"syscall.StartProcess", nil, "host.Helper runs programs that answer and end"},
	{"syscall.ForkExec", []string{"internal/function/guest/inside"}, "host.Helper runs programs that answer and end"},
}

// Commands is the same rule for another module, with the packages that may start programs there.
func Commands(starters ...string) []Guard {
	all := slices.Clone(commands)
	for i := range all {
		all[i].Only = starters
	}
	return all
}

// Dumps list all interfaces, and do not see that the kernel interrupted the list: an interface
// that is there all the time may be missing from it.
var Dumps = []Guard{
	{"net.Interfaces", suites, "host.Netns repeats a list that the kernel interrupted"},
	{"net.InterfaceAddrs", suites, "host.Netns repeats a list that the kernel interrupted"},
	{"net.InterfaceByName", suites, "host.Netns asks for one interface"},
	{"net.InterfaceByIndex", suites, "host.Netns asks for one interface"},
}

var suites = []string{"internal/link/transporttest", "internal/function/runtimetest"}

var starters = []string{
	"internal/host/...",                           // the helper itself, a holder of namespaces, and runc for functions that live on
	"internal/node",                               // supervisors, brokers
	"internal/link/ovs", "internal/link/afpacket", // their daemons
	"internal/function/dockercli", "internal/function/guest", // clients and machines that live as long as a function
	"internal/function/lab", "internal/function/image", // what a user asked to run: a command, a build
	"internal/measure/instrument", "internal/measure/microbench", // programs under measurement
	"internal/cluster", // kubectl, which watches
	"internal/link/transporttest", "internal/function/runtimetest", "internal/function/docker/dockertest", "test/...",
}

var (
	onlyHost = []string{"internal/host/..."}
	bundles  = []string{"internal/function/...", "internal/host/oci", "internal/host/sidecar"}
	metrics  = []string{"internal/measure/live", "cmd/..."}
	// kernel lists the packages that may use system calls at all: they start, signal
	// and lock, while everything in kernelCalls stays with host.
	kernel = []string{"internal/host/...", "internal/link/...", "internal/function/...", "internal/node", "internal/node/guestports", "internal/measure/..."}
)

// kernelCalls are the system calls that change the host: only host makes them.
var kernelCalls = guardCalls("only one room changes the host, and one package a guest's own kernel",
	"Mount", "Unmount", "PivotRoot", "Chroot", "Setns", "Unshare", "Sethostname",
	"OpenTree", "MoveMount", "Fsopen", "Fsmount", "Mknod", "InitModule", "FinitModule")

func guardCalls(why string, names ...string) []Guard {
	var guards []Guard
	for _, name := range names {
		for _, pkg := range []string{"unix.", "syscall."} {
			guards = append(guards, Guard{pkg + name, append([]string{"internal/function/guest/inside"}, onlyHost...), why})
		}
	}
	return guards
}
