// SPDX-License-Identifier: Apache-2.0

//go:build !amd64

package host

// emulatedCPU is false: these CPUs do not report whether they are emulated.
func emulatedCPU() bool { return false }
