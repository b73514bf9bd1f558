// SPDX-License-Identifier: Apache-2.0

// Package host is the only package that touches the kernel: namespaces,
// netlink, cgroups, mounts, sysfs, hugepages and processes.
package host
