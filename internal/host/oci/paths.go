// SPDX-License-Identifier: Apache-2.0

package oci

// MaskedPaths are covered in every container by /dev/null or an empty read-only
// directory: moby's list, and the PCI bus, which shows devices that the container
// cannot have.
var MaskedPaths = []string{
	"/proc/acpi",
	"/proc/asound",
	"/proc/interrupts",
	"/proc/kcore",
	"/proc/keys",
	"/proc/latency_stats",
	"/proc/sched_debug",
	"/proc/scsi",
	"/proc/timer_list",
	"/proc/timer_stats",
	"/sys/devices/virtual/powercap",
	"/sys/firmware",
	"/sys/fs/bpf",
	"/sys/kernel/debug",
	"/sys/kernel/tracing",
	"/sys/bus/pci",
}

// ReadonlyPaths is moby's list.
var ReadonlyPaths = []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"}
