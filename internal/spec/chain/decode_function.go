// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/drayage/dray/internal/spec/parse"
	"github.com/drayage/dray/internal/spec/schema"
	"github.com/drayage/dray/internal/spec/units"
	"go.yaml.in/yaml/v3"
)

// MaxCPUs is the largest NR_CPUS of a 64-bit kernel.
const MaxCPUs = 8192

// Bounds for the resources of a function.
const (
	minMemory  = 4 << 20 // bytes; with less, the kernel kills a process at once
	maxPids    = 4194304 // PID_MAX_LIMIT of a 64-bit kernel
	maxCPU     = MaxCPUs - 1
	maxQueues  = 64
	maxPorts   = 256
	hugePage2M = 2 << 20
	hugePage1G = 1 << 30
)

var functionFields = []parse.Field[Function]{
	parse.NameField("name", "a function's name", "The name of the function in link ends, `dray logs` and `dray exec`.",
		func(f *Function) *string { return &f.Name }).As(schema.Ref("name")).Must(),
	parse.IntegerField("instances", "How many instances of the function there are. Instance i, counted from 0, is a function of its own, NAME-i. A link between an instance's port and a port of a function without instances is repeated, too: each instance has the link LINK-i, and at its other end the port PORT-i. None of these ports can have an ip or mac in the file. With runtime external, only netns can be given, and instance i is in NETNS-i. In Kubernetes, each pod of the function takes the ports of one instance. Default: one function, with the name as it is.",
		1, MaxInstances, func(f *Function) *int { return &f.Instances }),
	parse.ChoiceField("runtime", "How the function runs: `runc`, as an OCI container; `process`, as a host program in its own network namespace; `docker`, as a Docker container; `external`, already running, so that Drayage only plumbs and measures it; `vm`, in a QEMU virtual machine with Debian's kernel and the host's programs.",
		runtimes, func(f *Function) *RuntimeName { return &f.Runtime }).Default("runc"),
	parse.NameField("host", "a host's name", "The simulated host of the function, one of the chain's hosts. Required if these have no machines; with machines, the planner chooses one by default.",
		func(f *Function) *string { return &f.Host }).As(schema.Ref("name")),
	parse.ReadField("image", "The image of the container; required for runtime `docker`.",
		schema.Pattern(imagePattern.String()), DecodeImage, func(f *Function) *string { return &f.Image }),
	parse.ValueField("rootfs", "The folder that becomes the root of the container, for runtime `runc`. Default: the host's root, read-only.",
		schema.Ref("path"), decodeAbsolutePath, func(f *Function) *string { return &f.Rootfs }),
	parse.ReadField("command", "The program and its arguments. By default nothing is started: the function is a sandbox whose ports are plumbed and measured.",
		schema.List(schema.Word(), 1, 0), decodeCommand, func(f *Function) *[]string { return &f.Command }),
	parse.ReadField("env", "Environment variables by name. Values are used as written.",
		schema.Schema{{Name: "type", Value: "object"}, {Name: "propertyNames", Value: schema.Schema{{Name: "pattern", Value: "^[A-Za-z_][A-Za-z0-9_]*$"}}}, {Name: "additionalProperties", Value: schema.Schema{{Name: "type", Value: []string{"string", "number", "boolean"}}}}}, decodeEnv, func(f *Function) *map[string]string { return &f.Env }),
	parse.ReadField("cpus", "The CPUs that the function is pinned to: a number of CPUs, such as 2, which the planner chooses, or text that names them, such as \"0-2,5\". A quoted \"2\" is CPU 2. Default: the function may run on any CPU.",
		cpusForm(), decodeCpus, func(f *Function) *CPURequest { return &f.CPUs }),
	{Name: "compute", Doc: "The time that the function must get of each of its CPUs. Functions with compute and one CPU each can share it, if their shares add up to at most 100 %. Without cpus it is a share of one CPU, which the planner chooses.",
		Form: schema.Ref("compute"), Decode: decodeCompute},
	parse.ReadField("memory", "The maximum memory of the function, at least 4Mi. Default: no limit.",
		schema.Ref("size"), DecodeMemory, func(f *Function) *units.Bytes { return &f.Memory }),
	parse.ValueField("split", "The functional split towards the core at which the function ends, by its option in 3GPP TR 38.801. A link between functions requires the latency and bitrate of the split of that end which is nearer to the antenna, unless it states its own.",
		splitForm(), decodeSplit, func(f *Function) *Split { return &f.Split }),
	parse.IntegerField("pids", "The maximum number of processes and threads of the function.",
		1, maxPids, func(f *Function) *int { return &f.Pids }).Default(512),
	parse.ReadField("hugepages", "The function's maximum of huge pages, by page size.",
		schema.Ref("hugepages"), DecodeHugePages, func(f *Function) *[]HugePages { return &f.HugePages }),
	parse.ChoiceField("restart", "When the command is restarted after it ends.",
		restarts, func(f *Function) *Restart { return &f.Restart }).Default("never"),
	parse.ChoiceField("sctp", "That the function's programs use SCTP, in user space if need be: `ip`, with packets of IP protocol 132: the kernel's SCTP, or, if it has none, libdray_sctp's, which needs runtime `process`; `udp`, libdray_sctp's in UDP datagrams (RFC 6951, port 9899), which needs no capability, and the same at the other end. The library is preloaded into the function's programs. Default: only what the kernel has.",
		sctpModes, func(f *Function) *SCTP { return &f.SCTP }),
	{Name: "external", Doc: "The running container or process; required for runtime `external`.",
		Form: schema.Ref("external"), Decode: decodeExternal},
	{Name: "vm", Doc: "The machine, for runtime `vm`. The function's cpus are its virtual CPUs, each pinned to a host CPU. The function's memory limits the command; the machine has 256Mi more, plus the huge pages of its DPDK applications.",
		Form: schema.Ref("vm"), Decode: decodeVM},
	{Name: "ports", Doc: "The ports of the function, at most 256. Names must be unique.",
		Form: schema.List(schema.Ref("port"), 0, 256), Decode: decodePorts},
	{Name: "tuns", Doc: "TUN interfaces of the function, at most 4, for the runtimes `process`, `runc` and `docker`. Their packets go to and from a program of the function, such as a GTP tunnel endpoint or a UE, which opens /dev/net/tun and attaches by name (TUNSETIFF with IFF_TUN, one queue). It needs no capability. Names must differ from those of its ports.",
		Form: schema.List(schema.Ref("tun"), 0, maxTuns), Decode: decodeTuns},
}

func splitForm() schema.Schema {
	return schema.OneOf(schema.Integer(1, 6), schema.Const(8), schema.Enum(Splits()))
}

func decodeSplit(d *parse.Decoder, n *yaml.Node, what string) (Split, bool) {
	return parse.Choice(d, n, what, Splits())
}

var externalFields = []parse.Field[External]{
	parse.IntegerField("pid", "The id of a process; its network namespace gets the ports.",
		1, maxPids, func(e *External) *int { return &e.PID }),
	parse.ReadField("container", "The name or id of a Docker container.",
		schema.Pattern(containerPattern.String()), decodeContainer, func(e *External) *string { return &e.Container }),
	parse.ValueField("netns", "The file of a network namespace, such as /run/netns/du.",
		schema.Ref("path"), decodeAbsolutePath, func(e *External) *string { return &e.Netns }),
}

var vmFields = []parse.Field[VM]{
	parse.ChoiceField("kernel", "The Debian kernel that it boots: `generic`, linux-image-amd64; `lowlatency`, the same with preempt=full on its command line, because Debian has no lowlatency package; `rt`, linux-image-rt-amd64 with PREEMPT_RT. The package is downloaded once, and never installed.",
		VMKernels, func(v *VM) *VMKernel { return &v.Kernel }).Default("generic"),
	parse.BooleanField("hugepages", "Whether the host's 2Mi huge pages back the machine's memory.",
		func(v *VM) *bool { return &v.HugePages }).Default(false),
	parse.BooleanField("nohz_full", "Whether the kernel's tick stops on every virtual CPU but the first while a single thread runs there (`nohz_full`, and `rcu_nocbs` for the same CPUs). The machine then has at least two virtual CPUs.",
		func(v *VM) *bool { return &v.NoHzFull }).Default(false),
	parse.ChoiceField("runtime", "How the command runs in the machine: `process`, or `runc`, an OCI container without capabilities that has the machine's ports.",
		vmRuntimes, func(v *VM) *RuntimeName { return &v.Runtime }).Default("process"),
}

func decodeVM(d *parse.Decoder, n *yaml.Node, f *Function) {
	f.VM = &VM{Kernel: VMKernelGeneric, Runtime: RuntimeProcess}
	parse.Object(d, n, "vm", vmFields, f.VM)
}

// checkVM refuses what a virtual machine cannot have: sockets and memory of the host.
// Its own huge pages are for DPDK applications.
func checkVM(d *parse.Decoder, f *Function, values map[string]*yaml.Node) {
	if n := values["tuns"]; n != nil {
		d.Fail(n, "remove it, or write runtime: runc", "tuns cannot be given with runtime: vm: a program in a virtual machine makes its own")
	}
	if n := values["hugepages"]; n != nil {
		switch {
		case !f.HasPort(FaceDPDK):
			d.Fail(n, "remove it, or write face: dpdk for a port", "hugepages have no effect with runtime: vm unless a port has face: dpdk")
		case slices.ContainsFunc(f.HugePages, func(h HugePages) bool { return h.Size != VMPage }):
			d.Fail(n, "write something like {2Mi: 512Mi}", "a virtual machine has huge pages of %v only", VMPage)
		}
	}
	for _, face := range []Face{FaceDPDK, FaceNative} {
		if f.VM != nil && f.VM.Runtime == RuntimeRunc && f.HasPort(face) {
			d.Fail(values["vm"], "write face: netdev, or remove runtime", "runtime: runc in a virtual machine gives no port with face: %s", face)
		}
	}
	native := 0
	for _, p := range f.Ports {
		if p.Face != FaceNative {
			continue
		}
		if native++; native > maxVMNative {
			d.FailAt(p.Pos, "use fewer, or another runtime", "a virtual machine has at most %d ports with face: native", maxVMNative)
		}
		if p.Queues > 1 {
			d.FailAt(p.Pos, "remove queues, or choose another runtime", "queues cannot be given for face: native with runtime: vm")
		}
	}
}

// maxVMNative is how many native ports a virtual machine has room for: two of its eight
// slots for memory each.
const maxVMNative = 4

func decodeExternal(d *parse.Decoder, n *yaml.Node, f *Function) {
	f.External = &External{}
	values := parse.Object(d, n, "external", externalFields, f.External)
	if values != nil && len(values) != 1 {
		d.Fail(parse.Deref(n), "write exactly one of pid, container and netns", "external names %d things", len(values))
	}
}

// checkRuntime refuses fields that the function's runtime would ignore.
func checkRuntime(d *parse.Decoder, f *Function, values map[string]*yaml.Node) {
	if values == nil {
		return
	}
	only := func(name string, runtime RuntimeName, fix string) {
		if n := values[name]; n != nil && f.Runtime != runtime {
			d.Fail(n, fix, "%s cannot be given with runtime: %s", name, f.Runtime)
		}
	}
	only("image", RuntimeDocker, "remove it, or write runtime: docker")
	only("rootfs", RuntimeRunc, "remove it, or write runtime: runc")
	only("external", RuntimeExternal, "remove it, or write runtime: external")
	only("vm", RuntimeVM, "remove it, or write runtime: vm")
	checkCompute(d, f, values)
	if f.Runtime == RuntimeVM {
		checkVM(d, f, values)
	}
	if n := values["sctp"]; n != nil && f.Runtime == RuntimeVM {
		d.Fail(n, "remove it: the machine's own kernel, Debian's, has the module sctp", "sctp cannot be given with runtime: vm")
	}
	if f.Runtime == RuntimeDocker && values["image"] == nil {
		d.FailAt(f.Pos, `add one, such as "image: debian:12"`, "runtime: docker needs an image")
	}
	if f.Runtime != RuntimeExternal {
		return
	}
	if values["external"] == nil {
		d.FailAt(f.Pos, `add one, such as "external: {container: my-du}"`, "runtime: external needs the field \"external\"")
	}
	for _, name := range []string{"command", "env", "cpus", "compute", "memory", "pids", "hugepages", "restart", "tuns", "sctp"} {
		if n := values[name]; n != nil {
			d.Fail(n, "remove it, or choose another runtime", "%s cannot be given with runtime: external, because Drayage does not start the function", name)
		}
	}
}

var (
	imagePattern     = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/@-]{0,254}$`)
	containerPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$`)
	envPattern       = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

func DecodeImage(d *parse.Decoder, n *yaml.Node) string {
	s, ok := d.Text(n, "image")
	if ok && !imagePattern.MatchString(s) {
		d.Fail(n, `write something like "debian:12"`, "%s is not a reference to a docker image", parse.Quote(s))
	}
	return s
}

func decodeContainer(d *parse.Decoder, n *yaml.Node) string {
	s, ok := d.Text(n, "container")
	if ok && !containerPattern.MatchString(s) {
		d.Fail(n, "write the name or id that `docker ps` shows", "%s is not the name or id of a container", parse.Quote(s))
	}
	return s
}

func decodeAbsolutePath(d *parse.Decoder, n *yaml.Node, what string) (string, bool) {
	s, ok := d.Text(n, what)
	if ok && (!path.IsAbs(s) || path.Clean(s) != s) {
		d.Fail(n, `write an absolute path without ".", ".." or a slash at its end`, "%s cannot be %s", what, parse.Quote(s))
	}
	return s, ok
}

func decodeCommand(d *parse.Decoder, n *yaml.Node) []string {
	if parse.Deref(n).Kind == yaml.ScalarNode {
		d.Fail(n, `write its words as a list, such as [sleep, infinity], or [sh, -c, "…"] for a shell`, "command must be a list")
		return nil
	}
	var argv []string
	readable := true
	d.List(n, "command", func(item *yaml.Node) {
		s, ok := d.Scalar(item, "a word of a command")
		argv, readable = append(argv, s), readable && ok
	})
	if readable && (len(argv) == 0 || strings.TrimSpace(argv[0]) == "") {
		d.Fail(parse.Deref(n), "write the program first, or remove the field to start none", "command has no program")
	}
	return argv
}

func decodeEnv(d *parse.Decoder, n *yaml.Node) map[string]string {
	n = parse.Deref(n)
	if !d.IsKind(n, yaml.MappingNode, "env") {
		return nil
	}
	env, values := map[string]string{}, d.Keys(n)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		switch {
		case values[key.Value] != value: // a key that Keys has reported
		case !envPattern.MatchString(key.Value):
			d.Fail(key, "use letters, digits and _", "the name of a variable cannot be %s", parse.Quote(key.Value))
		default:
			env[key.Value], _ = d.Scalar(value, "the variable "+parse.Quote(key.Value))
		}
	}
	return env
}

func DecodeMemory(d *parse.Decoder, n *yaml.Node) units.Bytes {
	v, ok := parse.Quantity(d, n, "memory", units.ParseBytes)
	if ok && v < minMemory {
		d.Fail(n, `write something like "512Mi"`, "memory cannot be %s: no process fits in less than %s", v, units.Bytes(minMemory))
	}
	return v
}
