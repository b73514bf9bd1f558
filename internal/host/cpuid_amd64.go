// SPDX-License-Identifier: Apache-2.0

package host

import "encoding/binary"

// cpuid returns a leaf of the processor's description of itself, subleaf 0
// (Intel SDM volume 2, CPUID).
func cpuid(leaf uint32) (eax, ebx, ecx, edx uint32)

// emulatedCPU reports whether QEMU emulates this processor in software. The
// name of the processor does not tell: QEMU's default is the same under KVM.
func emulatedCPU() bool {
	const hypervisorLeaf, tcg = 0x4000_0000, "TCGTCGTCGTCG" // QEMU, target/i386/cpu.c
	_, ebx, ecx, edx := cpuid(hypervisorLeaf)
	return registers(ebx, ecx, edx) == tcg
}

// registers is the text that CPUID leaves in registers.
func registers(parts ...uint32) string {
	var text []byte
	for _, part := range parts {
		text = binary.LittleEndian.AppendUint32(text, part)
	}
	return string(text)
}
