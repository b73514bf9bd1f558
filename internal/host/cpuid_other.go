// SPDX-License-Identifier: Apache-2.0

//go:build !amd64

package host

// emulatedCPU is false: these processors do not say whether they are emulated.
func emulatedCPU() bool { return false }
