// SPDX-License-Identifier: Apache-2.0

package guest

import (
	"context"
	"fmt"
	"net"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/host"
)

// pin binds each virtual CPU's thread to its host CPU.
func (c Config) pin(ctx context.Context) error {
	if len(c.CPUs) == 0 {
		return nil
	}
	m, err := openMonitor(ctx, c.Dir)
	if err != nil {
		return err
	}
	defer m.close()
	threads, err := m.vcpuThreads()
	if err != nil {
		return err
	}
	if len(threads) != c.vcpus() {
		return fmt.Errorf("QEMU has %d threads for %d virtual CPUs", len(threads), c.vcpus())
	}
	for i, tid := range threads {
		var set unix.CPUSet
		cpu := c.CPUs[i%len(c.CPUs)]
		set.Set(cpu)
		if err := unix.SchedSetaffinity(tid, &set); err != nil {
			return fmt.Errorf("pin virtual CPU %d to CPU %d: %w", i, cpu, err)
		}
	}
	return nil
}

// vcpuThreads asks QEMU for the threads of the virtual CPUs, in order.
func (m *monitor) vcpuThreads() ([]int, error) {
	var cpus []struct {
		Index  int `json:"cpu-index"`
		Thread int `json:"thread-id"`
	}
	if err := m.execute("query-cpus-fast", nil, &cpus); err != nil {
		return nil, err
	}
	threads := make([]int, len(cpus))
	for _, cpu := range cpus {
		if cpu.Index < 0 || cpu.Index >= len(cpus) {
			return nil, fmt.Errorf("QEMU: %d virtual CPUs, one of them number %d", len(cpus), cpu.Index)
		}
		threads[cpu.Index] = cpu.Thread
	}
	return threads, nil
}

// connect connects to a socket in a guest's directory.
func connect(ctx context.Context, dir, name string) (net.Conn, error) {
	conn, err := host.DialUnix(ctx, "unix", filepath.Join(dir, name))
	if err != nil {
		return nil, fmt.Errorf("guest: %w", err)
	}
	return conn, nil
}

// closeWith closes the connection when ctx ends; stop ends the watching.
func closeWith(ctx context.Context, conn net.Conn) (stop func() bool) {
	return context.AfterFunc(ctx, func() { conn.Close() })
}
