// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/drayage/dray/internal/host"
)

// Exec runs a program next to the process, with the same confinement, until it
// ends. It returns the output. Use it to query a process that hostile applications
// also talk to.
func (p Process) Exec(ctx context.Context, args ...string) (string, error) {
	out, err := p.container().Helper(p.Beside(), "exec", append([]string{p.Name}, args...)...).Output(ctx)
	var failed *host.HelperError
	if errors.As(err, &failed) {
		err = fmt.Errorf("%s: %w: %s", strings.Join(args, " "), failed.Fault, failed.Said)
	}
	return out, err
}
