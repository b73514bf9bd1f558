// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"time"

	"github.com/drayage/dray/internal/result/verdict"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/manifest"
)

// Reasons of the condition Verified.
const (
	reasonMet           = "Met"
	reasonMissed        = "Missed"
	reasonNotMeasurable = "NotMeasurable"
	reasonFailed        = "Failed" // nothing was measured
)

// recorder owns the condition Verified, and no other field.
const recorder = "--field-manager=dray-verify"

// Record writes the outcome of an active verification to the condition Verified of a chain. failed is why
// there is none.
func (k *Kubectl) Record(ctx context.Context, c *Chain, outcome verdict.Word, failed bool, message string) error {
	q := Condition{Type: manifest.ConditionVerified, Status: "Unknown", Reason: reasonNotMeasurable, Message: message, Since: time.Now().UTC().Truncate(time.Second), Seen: c.Metadata.Generation}
	switch {
	case failed:
		q.Reason = reasonFailed
	case outcome == verdict.Met:
		q.Status, q.Reason = isTrue, reasonMet
	case outcome == verdict.Missed:
		q.Status, q.Reason = isFalse, reasonMissed
	}
	if was := c.Condition(q.Type); was.Status == q.Status {
		q.Since = was.Since
	}
	text, err := json.Marshal(map[string]any{
		"apiVersion": manifest.APIVersion, "kind": chain.Kind, "metadata": map[string]any{"namespace": c.Metadata.Namespace, "name": c.Metadata.Name},
		"status": map[string]any{"conditions": []Condition{q}},
	})
	if err != nil {
		return err
	}
	cmd := k.command(ctx, answerTime, "apply", "--server-side", "--force-conflicts", recorder, "--subresource=status", "--filename=-")
	cmd.Stdin = bytes.NewReader(text)
	_, err = answer(ctx, cmd)
	return err
}
