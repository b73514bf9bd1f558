// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/drayage/dray/internal/link/capture"
	"github.com/drayage/dray/internal/spec/manifest"
)

// CaptureOptions are the limits of a capture; 0 is none.
type CaptureOptions struct {
	Snaplen  int // bytes of each packet
	Count    uint64
	Duration time.Duration
}

// lastWords is how long a capture may take to end its file.
const lastWords = 10 * time.Second

// Capture writes the packets that pass an end of a link as pcapng, until a limit is
// reached, ctx ends, or the port is closed. The dray-node of the end's node captures them.
func (k *Kubectl) Capture(ctx context.Context, c *Chain, link string, e End, o CaptureOptions, out io.Writer) (*capture.Summary, error) {
	agents, err := k.Agents(ctx)
	if err != nil {
		return nil, err
	}
	agent, found := agents[e.Node]
	if !found {
		return nil, fmt.Errorf("no pod of dray-node is ready on node %s", e.Node)
	}
	cmd := k.command(ctx, "exec", "--stdin", "--namespace="+k.System, agent.Pod, "--container="+manifest.NodeContainer, "--",
		manifest.NodeCommand, manifest.CaptureVerb, fmt.Sprintf("--snaplen=%d", o.Snaplen), fmt.Sprintf("--count=%d", o.Count),
		fmt.Sprintf("--duration=%v", o.Duration), "--", c.Name()+"/"+link, e.Function, e.Port)
	var errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = out, &errs
	apart(cmd)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	cmd.Cancel, cmd.WaitDelay = stdin.Close, lastWords // the end of its input ends the capture
	err = cmd.Run()
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		err = nil
	}
	if err != nil {
		return nil, captureFailure(err, errs.String())
	}
	lines := strings.Split(strings.TrimSpace(errs.String()), "\n")
	var s capture.Summary
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &s); err != nil {
		return nil, fmt.Errorf("the capture broke off: %s", strings.TrimSpace(errs.String()))
	}
	return &s, nil
}

// captureFailure is what dray-node says of its failure, or kubectl.
func captureFailure(err error, errs string) error {
	for _, line := range strings.Split(errs, "\n") {
		if text, own := strings.CutPrefix(line, "dray-node: "); own {
			return errors.New(text)
		}
	}
	return failure(context.Background(), err, errs)
}
