// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Bounds of what a function may ask for.
const (
	minMemory  = 4 << 20 // bytes; the kernel kills a process that has less at once
	maxPids    = 4194304 // PID_MAX_LIMIT of a 64-bit kernel
	maxCPU     = 8191    // the largest NR_CPUS of a 64-bit kernel, less one
	maxQueues  = 64
	maxPorts   = 256
	hugePage2M = 2 << 20
	hugePage1G = 1 << 30
)

var functionFields = []field[Function]{
	{"name", true, func(d *decoder, n *yaml.Node, f *Function) { f.Name = d.name(n, "a function's name") }},
	{"runtime", false, func(d *decoder, n *yaml.Node, f *Function) {
		if v, ok := choice(d, n, "runtime", runtimes); ok {
			f.Runtime = v
		}
	}},
	{"host", false, func(d *decoder, n *yaml.Node, f *Function) { f.Host = d.name(n, "a host's name") }},
	{"image", false, func(d *decoder, n *yaml.Node, f *Function) { f.Image = d.image(n) }},
	{"rootfs", false, func(d *decoder, n *yaml.Node, f *Function) { f.Rootfs = d.absolutePath(n, "rootfs") }},
	{"command", false, func(d *decoder, n *yaml.Node, f *Function) { f.Command = d.command(n) }},
	{"env", false, func(d *decoder, n *yaml.Node, f *Function) { f.Env = d.env(n) }},
	{"cpus", false, func(d *decoder, n *yaml.Node, f *Function) { f.CPUs = d.cpus(n) }},
	{"memory", false, func(d *decoder, n *yaml.Node, f *Function) { f.Memory = d.memory(n) }},
	{"pids", false, func(d *decoder, n *yaml.Node, f *Function) { f.Pids, _ = d.integer(n, "pids", 1, maxPids) }},
	{"hugepages", false, func(d *decoder, n *yaml.Node, f *Function) { f.HugePages = d.hugePages(n) }},
	{"restart", false, func(d *decoder, n *yaml.Node, f *Function) {
		if v, ok := choice(d, n, "restart", restarts); ok {
			f.Restart = v
		}
	}},
	{"external", false, decodeExternal},
	{"vm", false, decodeVM},
	{"ports", false, decodePorts},
}

var externalFields = []field[External]{
	{"pid", false, func(d *decoder, n *yaml.Node, e *External) { e.PID, _ = d.integer(n, "pid", 1, maxPids) }},
	{"container", false, func(d *decoder, n *yaml.Node, e *External) { e.Container = d.container(n) }},
	{"netns", false, func(d *decoder, n *yaml.Node, e *External) { e.Netns = d.absolutePath(n, "netns") }},
}

var vmFields = []field[VM]{
	{"kernel", false, func(d *decoder, n *yaml.Node, v *VM) {
		if k, ok := choice(d, n, "kernel", vmKernels); ok {
			v.Kernel = k
		}
	}},
	{"hugepages", false, func(d *decoder, n *yaml.Node, v *VM) { v.HugePages, _ = d.boolean(n, "hugepages") }},
	{"nohz_full", false, func(d *decoder, n *yaml.Node, v *VM) { v.NoHzFull, _ = d.boolean(n, "nohz_full") }},
	{"runtime", false, func(d *decoder, n *yaml.Node, v *VM) {
		if r, ok := choice(d, n, "runtime", vmRuntimes); ok {
			v.Runtime = r
		}
	}},
}

func decodeVM(d *decoder, n *yaml.Node, f *Function) {
	f.VM = &VM{Kernel: VMKernelGeneric, Runtime: RuntimeProcess}
	object(d, n, "vm", vmFields, f.VM)
}

// checkVM refuses what a virtual machine cannot have: sockets and memory of the
// host's. Its own huge pages are for DPDK applications.
func (d *decoder) checkVM(f *Function, values map[string]*yaml.Node) {
	if n := values["hugepages"]; n != nil {
		switch {
		case !f.HasPort(FaceDPDK):
			d.fail(n, "remove it, or write face: dpdk for a port", "hugepages mean nothing with runtime: vm where no port has the face dpdk")
		case slices.ContainsFunc(f.HugePages, func(h HugePages) bool { return h.Size != VMPage }):
			d.fail(n, "write something like {2Mi: 512Mi}", "a virtual machine has huge pages of %v only", VMPage)
		}
	}
	if f.VM != nil && f.VM.Runtime == RuntimeRunc && f.HasPort(FaceDPDK) {
		d.fail(values["vm"], "write face: netdev, or remove runtime", "runtime: runc in a virtual machine gives no port with face: dpdk")
	}
	for _, p := range f.Ports {
		if p.Face == FaceNative {
			pos := p.Pos
			if at, ok := p.FieldPos["face"]; ok {
				pos = at
			}
			d.failAt(pos, "write face: netdev or dpdk, or choose another runtime", "face: %s cannot be given with runtime: vm", p.Face)
		}
	}
}

func decodeExternal(d *decoder, n *yaml.Node, f *Function) {
	f.External = &External{}
	values := object(d, n, "external", externalFields, f.External)
	if values != nil && len(values) != 1 {
		d.fail(deref(n), "write exactly one of pid, container and netns", "external names %d things", len(values))
	}
}

// checkRuntime refuses fields that the function's runtime would not apply.
func (d *decoder) checkRuntime(f *Function, values map[string]*yaml.Node) {
	if values == nil {
		return
	}
	only := func(name string, runtime RuntimeName, fix string) {
		if n := values[name]; n != nil && f.Runtime != runtime {
			d.fail(n, fix, "%s cannot be given with runtime: %s", name, f.Runtime)
		}
	}
	only("image", RuntimeDocker, "remove it, or write runtime: docker")
	only("rootfs", RuntimeRunc, "remove it, or write runtime: runc")
	only("external", RuntimeExternal, "remove it, or write runtime: external")
	only("vm", RuntimeVM, "remove it, or write runtime: vm")
	if f.Runtime == RuntimeVM {
		d.checkVM(f, values)
	}
	if f.Runtime == RuntimeDocker && values["image"] == nil {
		d.failAt(f.Pos, `add one, such as "image: debian:12"`, "runtime: docker needs an image")
	}
	if f.Runtime != RuntimeExternal {
		return
	}
	if values["external"] == nil {
		d.failAt(f.Pos, `add one, such as "external: {container: my-du}"`, "runtime: external needs the field \"external\"")
	}
	for _, name := range []string{"command", "env", "cpus", "memory", "pids", "hugepages", "restart"} {
		if n := values[name]; n != nil {
			d.fail(n, "remove it, or choose another runtime", "%s cannot be given with runtime: external, because somebody else runs the function", name)
		}
	}
}

var (
	imagePattern     = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/@-]{0,254}$`)
	containerPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$`)
	envPattern       = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

func (d *decoder) image(n *yaml.Node) string {
	s, ok := d.text(n, "image")
	if ok && !imagePattern.MatchString(s) {
		d.fail(n, `write something like "debian:12"`, "%s is not a reference to a docker image", quote(s))
	}
	return s
}

func (d *decoder) container(n *yaml.Node) string {
	s, ok := d.text(n, "container")
	if ok && !containerPattern.MatchString(s) {
		d.fail(n, "write the name or id that `docker ps` shows", "%s is not the name or id of a container", quote(s))
	}
	return s
}

func (d *decoder) absolutePath(n *yaml.Node, what string) string {
	s, ok := d.text(n, what)
	if ok && (!path.IsAbs(s) || path.Clean(s) != s) {
		d.fail(n, `write an absolute path without ".", ".." or a slash at its end`, "%s cannot be %s", what, quote(s))
	}
	return s
}

func (d *decoder) command(n *yaml.Node) []string {
	if deref(n).Kind == yaml.ScalarNode {
		d.fail(n, `write its words as a list, such as [sleep, infinity], or [sh, -c, "…"] for a shell`, "command must be a list")
		return nil
	}
	var argv []string
	readable := true
	d.list(n, "command", func(item *yaml.Node) {
		s, ok := d.scalar(item, "a word of a command")
		argv, readable = append(argv, s), readable && ok
	})
	if readable && (len(argv) == 0 || strings.TrimSpace(argv[0]) == "") {
		d.fail(deref(n), "write the program first, or remove the field to start none", "command has no program")
	}
	return argv
}

func (d *decoder) env(n *yaml.Node) map[string]string {
	n = deref(n)
	if !d.isKind(n, yaml.MappingNode, "env") {
		return nil
	}
	env, values := map[string]string{}, d.keys(n)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		switch {
		case values[key.Value] != value: // a key that keys has reported
		case !envPattern.MatchString(key.Value):
			d.fail(key, "use letters, digits and _", "the name of a variable cannot be %s", quote(key.Value))
		default:
			env[key.Value], _ = d.scalar(value, "the variable "+quote(key.Value))
		}
	}
	return env
}

func (d *decoder) memory(n *yaml.Node) Bytes {
	v, ok := quantity(d, n, "memory", ParseBytes)
	if ok && v < minMemory {
		d.fail(n, `write something like "512Mi"`, "memory cannot be %s: no process fits in less than %s", v, Bytes(minMemory))
	}
	return v
}
