// SPDX-License-Identifier: Apache-2.0

package switchd

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/link/ovsdpdk"
)

const (
	// toolTimeout bounds each command to Open vSwitch.
	toolTimeout = 10 * time.Second
	// longestSleep is the longest sleep between two polls that find little, in µs.
	longestSleep = "50"
	// longestMemory is the longest neighbour timeout of a switch, in seconds.
	longestMemory = "3600"
)

// ovs finds the programs of Open vSwitch, and configures the switch.
type ovs struct {
	o       Options
	program ovsdpdk.Program
	tools   map[string]string // paths
	cpus    []int
}

func findOVS(ctx context.Context, o Options) (*ovs, error) {
	program, err := ovsdpdk.FindSwitch(ctx)
	if err != nil {
		return nil, err
	}
	w := &ovs{o: o, program: program, tools: map[string]string{}, cpus: o.CPUs}
	for _, tool := range []string{"ovsdb-server", "ovsdb-tool", "ovs-vsctl", "ovs-ofctl", "ovs-appctl"} {
		if w.tools[tool], err = host.LookProgram(tool); err != nil {
			return nil, err
		}
	}
	if len(w.cpus) == 0 {
		allowed, err := host.AllowedCPUs()
		if err != nil {
			return nil, err
		}
		w.cpus = allowed[len(allowed)-1:]
	}
	return w, nil
}

func (w *ovs) path(name string) string { return filepath.Join(w.o.Run, name) }
func (w *ovs) database() string        { return "unix:" + w.path("db.sock") }
func (w *ovs) control() string         { return w.path("ovs-vswitchd.ctl") }

// environment is that of all its programs.
func (w *ovs) environment() []string {
	return append(os.Environ(), "OVS_RUNDIR="+w.o.Run, "OVS_LOGDIR="+w.o.Run, "OVS_DBDIR="+w.o.Run)
}

// daemonArgs are arguments of both daemons.
func (w *ovs) daemonArgs(control string) []string {
	return []string{"--unixctl=" + control, "--no-chdir", "-vsyslog:off", "-vconsole:warn"}
}

func (w *ovs) dbArgs() []string {
	return append([]string{w.tools["ovsdb-server"], w.path("conf.db"), "--remote=p" + w.database()}, w.daemonArgs(w.path("ovsdb-server.ctl"))...)
}

func (w *ovs) switchArgs() []string {
	return append([]string{w.program.Path, w.database(), "--enable-dummy"}, w.daemonArgs(w.control())...)
}

// create makes an empty database.
func (w *ovs) create(ctx context.Context) error {
	definition, err := ovsdpdk.Schema()
	if err != nil {
		return err
	}
	for _, name := range []string{"conf.db", ".conf.db.~lock~"} {
		if err := os.RemoveAll(w.path(name)); err != nil {
			return err
		}
	}
	_, err = w.tool(ctx, "", "ovsdb-tool", "create", w.path("conf.db"), definition)
	return err
}

// configure says how the switch starts DPDK, before that runs.
func (w *ovs) configure(ctx context.Context) error {
	for {
		c, err := net.Dial("unix", w.path("db.sock"))
		if err == nil {
			_ = c.Close()
			break
		}
		if err := host.Sleep(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
	// The switch adds --in-memory by itself, which EAL rejects without huge pages, unless legacy
	// memory is configured.
	eal := []string{"-m", strconv.Itoa(w.o.Memory), "--no-pci", "--no-telemetry", "--no-huge", "--legacy-mem", "--no-shconf"}
	sleep := longestSleep
	if w.o.Poll {
		sleep = "0"
	}
	return w.vsctl(ctx, "--no-wait", "set", "Open_vSwitch", ".",
		"other_config:dpdk-init=true", "other_config:per-port-memory=true",
		"other_config:pmd-cpu-mask="+ovsdpdk.CPUMask(w.cpus), "other_config:pmd-maxsleep="+sleep,
		`other_config:dpdk-extra="`+strings.Join(eal, " ")+`"`)
}

// setFlows gives a bridge exactly these flows.
func (w *ovs) setFlows(ctx context.Context, bridge string, flows []string) error {
	_, err := w.tool(ctx, strings.Join(flows, "\n")+"\n", "ovs-ofctl", "replace-flows", "unix:"+w.path(bridge+".mgmt"), "-")
	return err
}

// vsctl changes the database, and waits until the switch has applied that, unless the arguments
// say otherwise.
func (w *ovs) vsctl(ctx context.Context, args ...string) error {
	_, err := w.tool(ctx, "", "ovs-vsctl", append([]string{"--db=" + w.database()}, args...)...)
	return err
}

func (w *ovs) appctl(ctx context.Context, args ...string) error {
	_, err := w.tool(ctx, "", "ovs-appctl", append([]string{"--target=" + w.control()}, args...)...)
	return err
}

// tool runs one of Open vSwitch's tools.
func (w *ovs) tool(ctx context.Context, input, name string, args ...string) (string, error) {
	return host.Helper{Program: w.tools[name], Args: args, Env: w.environment(), Limit: toolTimeout, Stdin: strings.NewReader(input)}.Output(ctx)
}
