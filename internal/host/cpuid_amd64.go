// SPDX-License-Identifier: Apache-2.0

package host

import "encoding/binary"

// cpuid returns subleaf 0 of a leaf of the CPUID instruction (Intel SDM volume 2,
// CPUID).
func cpuid(leaf uint32) (eax, ebx, ecx, edx uint32)

// emulatedCPU reports whether QEMU emulates this CPU in software. The CPU's name
// does not show it: QEMU's default is the same under KVM.
func emulatedCPU() bool {
	const hypervisorLeaf, tcg = 0x4000_0000, "TCGTCGTCGTCG" // QEMU, target/i386/cpu.c
	_, ebx, ecx, edx := cpuid(hypervisorLeaf)
	return registers(ebx, ecx, edx) == tcg
}

// registers is the text in CPUID's output registers.
func registers(parts ...uint32) string {
	var text []byte
	for _, part := range parts {
		text = binary.LittleEndian.AppendUint32(text, part)
	}
	return string(text)
}
