// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"encoding/json"
	"slices"

	"github.com/moby/profiles/seccomp"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/spec/chain"
)

// packetIgnoreOutgoing is PACKET_IGNORE_OUTGOING of linux/if_packet.h.
const packetIgnoreOutgoing = 23

// packetOptions are the options that a function may set on the packet sockets of
// its native ports: those that libdray sets. Any other is refused. A ring
// (PACKET_RX_RING, PACKET_TX_RING) takes gigabytes of kernel memory that no cgroup
// counts, and asks for no capability.
var packetOptions = []uint64{unix.PACKET_AUXDATA, packetIgnoreOutgoing}

// SeccompProfile is the system calls that a container may make, in Docker's format:
// moby's default profile and the function's SeccompCalls, less four things.
//
//   - The options of packet sockets that packetOptions leaves out.
//   - Sockets to the hypervisor in any form: moby's rule compares 64 bits, of which the
//     kernel ignores 32.
//   - Netlink sockets between programs: no cgroup is charged for what waits in them. One
//     thousand of them hold eight gigabytes.
//   - System calls of other ABIs than the processor's own. On x86 socketcall keeps its
//     arguments in memory, where no filter sees them; and libseccomp lets it through
//     for each rule about socket.
func (s Spec) SeccompProfile() *seccomp.Seccomp {
	profile := seccomp.DefaultProfile()
	for i := range profile.ArchMap {
		profile.ArchMap[i].SubArches = nil
	}
	kept := profile.Syscalls[:0]
	for _, rule := range profile.Syscalls {
		rule.Names = slices.DeleteFunc(rule.Names, func(name string) bool { return name == "setsockopt" || name == "socket" })
		if len(rule.Names) > 0 {
			kept = append(kept, rule)
		}
	}
	const families, levels, protocols = 64, 512, 32 // more than Linux has of each
	profile.Syscalls = append(kept, allowOthers("socket", 0, families, []uint64{unix.AF_VSOCK, unix.AF_NETLINK})...)
	profile.Syscalls = append(profile.Syscalls, allowOthers("socket", 2, protocols, []uint64{unix.NETLINK_USERSOCK},
		specs.LinuxSeccompArg{Index: 0, Value: unix.AF_NETLINK, Op: specs.OpEqualTo})...)
	profile.Syscalls = append(profile.Syscalls, allowOthers("setsockopt", 1, levels, []uint64{unix.SOL_PACKET})...)
	for _, option := range packetOptions {
		profile.Syscalls = append(profile.Syscalls, allow([]string{"setsockopt"},
			specs.LinuxSeccompArg{Index: 1, Value: unix.SOL_PACKET, Op: specs.OpEqualTo},
			specs.LinuxSeccompArg{Index: 2, Value: option, Op: specs.OpEqualTo}))
	}
	if calls := s.SeccompCalls(); len(calls) > 0 {
		profile.Syscalls = append(profile.Syscalls, allow(calls))
	}
	return profile
}

// allowOthers allows a call if an argument is below end, a power of two, but none of
// refused, and if the other conditions hold. Each rule allows a block of values that
// differ in their lowest bits only.
func allowOthers(call string, index uint, end uint64, refused []uint64, also ...specs.LinuxSeccompArg) []*seccomp.Syscall {
	var rules []*seccomp.Syscall
	var add func(first, size uint64)
	add = func(first, size uint64) {
		switch {
		case !slices.ContainsFunc(refused, func(v uint64) bool { return v-first < size }):
			block := specs.LinuxSeccompArg{Index: index, Value: ^(size - 1), ValueTwo: first, Op: specs.OpMaskedEqual}
			rules = append(rules, allow([]string{call}, append([]specs.LinuxSeccompArg{block}, also...)...))
		case size > 1:
			add(first, size/2)
			add(first+size/2, size/2)
		}
	}
	add(0, end)
	return rules
}

func allow(calls []string, args ...specs.LinuxSeccompArg) *seccomp.Syscall {
	return &seccomp.Syscall{LinuxSyscall: specs.LinuxSyscall{Names: calls, Action: specs.ActAllow, Args: args}}
}

// OCISeccomp is SeccompProfile as a bundle contains it.
func (s Spec) OCISeccomp(bundle *specs.Spec) (*specs.LinuxSeccomp, error) {
	text, err := json.Marshal(s.SeccompProfile())
	if err != nil {
		return nil, err
	}
	return seccomp.LoadProfile(string(text), bundle)
}

// HugePagesSeccomp is the profile of a DPDK application with huge pages and without
// capabilities, as JSON of the OCI runtime specification.
func HugePagesSeccomp() ([]byte, error) {
	s := Spec{Function: chain.Function{Ports: []chain.Port{{Face: chain.FaceDPDK}}, HugePages: []chain.HugePages{{}}}}
	profile, err := s.OCISeccomp(&specs.Spec{Process: &specs.Process{Capabilities: &specs.LinuxCapabilities{}}})
	if err != nil {
		return nil, err
	}
	return json.MarshalIndent(profile, "", " ")
}
