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
// without one the generator. Each machine has its own clock, so one thread is both
// ends.
func inMachine(c record.Config) bool {
	return c.Runtime == string(chain.RuntimeVM) && c.Face == string(chain.FaceDPDK)
}

// generatorRuntime is the generator's runtime. Around a VNF in a virtual machine it
// is a host process, which no emulator slows down.
func generatorRuntime(c record.Config) chain.RuntimeName {
	if c.VNF != string(matrix.VNFDirect) && inMachine(c) {
		return chain.RuntimeProcess
	}
	return chain.RuntimeName(c.Runtime)
}

// vnfReady is a VNF's output once its ports are up.
const vnfReady = `"event":"ready"`

// vnfPatience bounds the start of a VNF. In a virtual machine EAL loads its drivers
// from the host's files: emulated next to busy programs that took up to half a
// minute.
const vnfPatience = 2 * time.Minute

// readyEvery is how often a VNF's log is checked.
const readyEvery = 100 * time.Millisecond

// portsUp reports whether the log shows that a VNF's ports are up.
func portsUp(log string) bool { return strings.Contains(log, vnfReady) }

// awaitReady waits until the VNF's log shows that it is ready. failed: it has ended.
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
			return fmt.Errorf("%s did not bring its ports up, or has no workers: %w", vnfProgram, err)
		}
	}
}

// Emulated reports whether any function of a chain is a machine with emulated CPUs.
func Emulated(live *node.Live) bool {
	for _, s := range live.State.Sandboxes {
		if guest.Emulated(s.Guest) {
			return true
		}
	}
	return false
}
