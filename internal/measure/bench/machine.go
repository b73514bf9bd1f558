// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/drayage/dray/internal/function/guest"
	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/node"
	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/matrix"
)

// inMachine reports whether DPDK applications are in a virtual machine: the VNF, or
// if there is none the generator. Each machine has its own clock: there one
// thread is both ends.
func inMachine(c record.Config) bool {
	return c.Runtime == string(chain.RuntimeVM) && c.Face == string(chain.FaceDPDK)
}

// generatorRuntime is what the generator runs in. Around a VNF in a virtual machine
// it is a process of the host, which no emulator slows down.
func generatorRuntime(c record.Config) chain.RuntimeName {
	if c.VNF != string(matrix.VNFDirect) && inMachine(c) {
		return chain.RuntimeProcess
	}
	return chain.RuntimeName(c.Runtime)
}

// vnfReady is what a VNF prints once its ports are up.
const vnfReady = `"event":"ready"`

// vnfPatience bounds the start of a VNF. In a virtual machine EAL loads its drivers
// from the host's files: emulated beside busy programs that was seen to take half a
// minute.
const vnfPatience = 2 * time.Minute

// readyEvery is how often a VNF's log is looked at.
const readyEvery = 100 * time.Millisecond

// portsUp reports whether a VNF with that log has its ports up.
func portsUp(log string) bool { return strings.Contains(log, vnfReady) }

// awaitReady waits until the VNF's log says that it is ready. failed tells that it has ended.
func awaitReady(ctx context.Context, log string, ready func(log string) bool, failed func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, vnfPatience)
	defer cancel()
	for {
		text, err := os.ReadFile(log)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if ready(string(text)) {
			return nil
		}
		if err := failed(ctx); err != nil {
			return err
		}
		if err := host.Sleep(ctx, readyEvery); err != nil {
			return fmt.Errorf("%s has not brought its ports up, or has no workers: %w", vnfProgram, err)
		}
	}
}

// Emulated reports whether some function of a chain is a machine whose CPUs are emulated.
func Emulated(live *node.Live) bool {
	for _, s := range live.State.Sandboxes {
		if guest.Emulated(s.Guest) {
			return true
		}
	}
	return false
}
