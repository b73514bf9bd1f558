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
// moby's default profile and the function's SeccompCalls, less three things.
//
//   - The options of packet sockets that packetOptions leaves out.
//   - Sockets to the hypervisor in any form: moby's rule compares 64 bits, of which the
//     kernel ignores 32.
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
	const families, levels = 64, 512 // more than Linux has of each
	profile.Syscalls = append(kept, allowOthers("socket", 0, unix.AF_VSOCK, families)...)
	profile.Syscalls = append(profile.Syscalls, allowOthers("setsockopt", 1, unix.SOL_PACKET, levels)...)
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

// allowOthers allows a call if an argument is below end, a power of two, but not
// refused. Each rule allows the values that first differ from refused in one bit.
func allowOthers(call string, index uint, refused, end uint64) []*seccomp.Syscall {
	var rules []*seccomp.Syscall
	for bit := uint64(1); bit < end; bit <<= 1 {
		mask := ^(bit - 1)
		rules = append(rules, allow([]string{call},
			specs.LinuxSeccompArg{Index: index, Value: mask, ValueTwo: (refused ^ bit) & mask, Op: specs.OpMaskedEqual}))
	}
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
