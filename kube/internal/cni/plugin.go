// SPDX-License-Identifier: Apache-2.0

package cni

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/containernetworking/cni/pkg/skel"
	cnitypes "github.com/containernetworking/cni/pkg/types"
	current "github.com/containernetworking/cni/pkg/types/100"
	"github.com/containernetworking/cni/pkg/version"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drayage/dray/internal/host"
)

// Conf is the plugin's entry in the configuration of a network.
type Conf struct {
	cnitypes.PluginConf
	// Dir is the directory that dray-node shares with the plugin; default: Plugin.Dir.
	Dir string `json:"stateDir,omitempty"`
	// RuntimeConfig is there for the capability CNIDeviceInfoFile.
	RuntimeConfig struct {
		DeviceFile string `json:"CNIDeviceInfoFile,omitempty"`
	} `json:"runtimeConfig,omitzero"`
}

// podArgs are what Kubernetes' runtimes pass in CNI_ARGS.
type podArgs struct {
	cnitypes.CommonArgs
	K8S_POD_UID cnitypes.UnmarshallableString //nolint:revive // the name decides which argument it is
}

// Plugin is the program, with a default directory.
type Plugin struct {
	Dir string
	// Devices is the directory of device information files.
	Devices string
	Out     io.Writer
}

// Funcs are the verbs of CNI 1.1; the library answers VERSION.
func (p Plugin) Funcs() skel.CNIFuncs {
	return skel.CNIFuncs{Add: p.Add, Del: p.Del, Check: p.Check, GC: p.GC, Status: p.Status}
}

// task is one call of the plugin.
type task struct {
	conf Conf
	prev *current.Result // nil: the plugin is not in a chain, as under Multus
	at   Attachment
	// ours is whether the pod has ports that it sees.
	ours bool
}

// parse reads what the runtime has passed.
func (p Plugin) parse(args *skel.CmdArgs) (*task, error) {
	t := &task{conf: Conf{Dir: p.Dir}}
	if err := json.Unmarshal(args.StdinData, &t.conf); err != nil {
		return nil, cnitypes.NewError(cnitypes.ErrDecodingFailure, "the network's configuration", err.Error())
	}
	if err := version.ParsePrevResult(&t.conf.PluginConf); err != nil {
		return nil, cnitypes.NewError(cnitypes.ErrDecodingFailure, "prevResult", err.Error())
	}
	if t.conf.PrevResult != nil {
		var err error
		if t.prev, err = current.NewResultFromResult(t.conf.PrevResult); err != nil {
			return nil, cnitypes.NewError(cnitypes.ErrDecodingFailure, "prevResult", err.Error())
		}
	}
	var pod podArgs
	pod.IgnoreUnknown = true
	if err := cnitypes.LoadArgs(args.Args, &pod); err != nil {
		return nil, cnitypes.NewError(cnitypes.ErrInvalidEnvironmentVariables, "CNI_ARGS", err.Error())
	}
	t.at = Attachment{Pod: types.UID(pod.K8S_POD_UID), Container: args.ContainerID, Netns: args.Netns, Network: t.conf.Name}
	if t.at.Pod == "" { // a container without a pod has no claims
		return t, nil
	}
	file, err := Record(t.conf.Dir, t.at.Pod)
	if err != nil {
		return nil, cnitypes.NewError(cnitypes.ErrInvalidEnvironmentVariables, "K8S_POD_UID", err.Error())
	}
	_, err = os.Lstat(file) // whatever is there: dray-node decides
	t.ours = err == nil
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return t, err
}

// Add has dray-node make the interfaces of a pod.
func (p Plugin) Add(args *skel.CmdArgs) error {
	t, err := p.parse(args)
	if err != nil {
		return err
	}
	var made []Interface
	if t.ours {
		if err := call(t.conf.Dir, PathAdd, t.at, &made); err != nil {
			return cnitypes.NewError(cnitypes.ErrTryAgainLater, "dray-cni: no interfaces yet", err.Error())
		}
	}
	result := t.prev
	if result == nil {
		if made, err = only(made, args.IfName); err != nil {
			return err
		}
		if file := t.conf.RuntimeConfig.DeviceFile; made[0].Device != nil && file != "" {
			if err := writeDevice(p.Devices, file, *made[0].Device); err != nil {
				return err
			}
		}
		result = &current.Result{CNIVersion: current.ImplementedSpecVersion}
	} else {
		made = slices.DeleteFunc(made, func(m Interface) bool { return m.Device != nil })
	}
	if err := extend(result, made, args.Netns); err != nil {
		return err
	}
	printed, err := result.GetAsVersion(t.conf.CNIVersion)
	if err != nil {
		return cnitypes.NewError(cnitypes.ErrIncompatibleCNIVersion, "the result", err.Error())
	}
	return printed.PrintTo(p.Out)
}

// only is the port of this name. A network outside a chain has one for each pod.
func only(made []Interface, name string) ([]Interface, error) {
	var names []string
	for _, m := range made {
		if m.Name == name {
			return []Interface{m}, nil
		}
		names = append(names, m.Name)
	}
	return nil, cnitypes.NewError(cnitypes.ErrInvalidEnvironmentVariables,
		fmt.Sprintf("the pod has no port %s with face netdev, nor a DPDK device with a socket: it has %s", name, cmp.Or(strings.Join(names, ", "), "none")),
		"name the network's interface as a port: k8s.v1.cni.cncf.io/networks: NETWORK@PORT")
}

// extend adds interfaces to a result.
func extend(result *current.Result, made []Interface, netns string) error {
	for _, m := range made {
		i := &current.Interface{Name: m.Name, Mac: m.MAC, Mtu: m.MTU, Sandbox: netns}
		if m.Device != nil {
			i.SocketPath = m.Device.Path
		}
		result.Interfaces = append(result.Interfaces, i)
		if m.IP == "" {
			continue
		}
		ip, subnet, err := net.ParseCIDR(m.IP)
		if err != nil {
			return fmt.Errorf("dray-node says that %s has address %q: %w", m.Name, m.IP, err)
		}
		subnet.IP = ip
		result.IPs = append(result.IPs, &current.IPConfig{Interface: current.Int(len(result.Interfaces) - 1), Address: *subnet})
	}
	return nil
}

// Del tells dray-node that a pod's namespace ends. Interfaces end with their claim.
func (p Plugin) Del(args *skel.CmdArgs) error {
	t, err := p.parse(args)
	if err != nil || !t.ours {
		return err
	}
	err = call(t.conf.Dir, PathDel, t.at, nil)
	if errors.Is(err, ErrAbsent) { // the next ADD replaces what it knows, and it collects what is left
		err = nil
	}
	return err
}

// Check compares a pod's interfaces with what they should be.
func (p Plugin) Check(args *skel.CmdArgs) error {
	t, err := p.parse(args)
	if err != nil || !t.ours {
		return err
	}
	var wanted []Interface
	if err := call(t.conf.Dir, PathGet, t.at, &wanted); err != nil {
		return cnitypes.NewError(cnitypes.ErrTryAgainLater, "dray-cni", err.Error())
	}
	// A network outside a chain has one of them.
	wanted = slices.DeleteFunc(wanted, func(w Interface) bool {
		return w.Device != nil || t.prev != nil && !listed(t.prev, w.Name, args.Netns)
	})
	file, err := os.Open(args.Netns)
	if err != nil {
		return cnitypes.NewError(cnitypes.ErrUnknownContainer, "network namespace", err.Error())
	}
	defer file.Close()
	for _, w := range wanted {
		state, err := host.OfFile(file).ReadLink(w.Name)
		if err != nil {
			return fmt.Errorf("interface %s: %w", w.Name, err)
		}
		text, err := w.differs(state)
		if err != nil {
			return err
		}
		if text != "" {
			return fmt.Errorf("interface %s %s", w.Name, text)
		}
	}
	return nil
}

// differs says what of an interface is not as dray-node says; "": nothing.
func (i *Interface) differs(now host.LinkState) (string, error) {
	mac, err := net.ParseMAC(i.MAC)
	var ip netip.Prefix
	if err == nil && i.IP != "" {
		ip, err = netip.ParsePrefix(i.IP)
	}
	if err != nil {
		return "", fmt.Errorf("dray-node says of interface %s: %w", i.Name, err)
	}
	return now.Differs(host.Iface{MAC: mac, MTU: i.MTU}, ip), nil
}

// listed reports whether a result has an interface in a pod.
func listed(r *current.Result, name, netns string) bool {
	return slices.ContainsFunc(r.Interfaces, func(i *current.Interface) bool { return i != nil && i.Name == name && i.Sandbox == netns })
}

// GC tells dray-node which sandboxes of a network still exist.
func (p Plugin) GC(args *skel.CmdArgs) error {
	t, err := p.parse(args)
	if err != nil {
		return err
	}
	valid := Valid{Network: t.conf.Name, Containers: []string{}}
	for _, a := range t.conf.ValidAttachments {
		valid.Containers = append(valid.Containers, a.ContainerID)
	}
	return call(t.conf.Dir, PathGC, valid, nil)
}

// Status is ready without dray-node, too: pods without interfaces of ours do not need it. If it were not, a node
// whose dray-node died could not start another one, because its network would count as not ready.
func (p Plugin) Status(args *skel.CmdArgs) error {
	_, err := p.parse(args)
	return err
}
