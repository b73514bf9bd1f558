// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drayage/dray/internal/host"
)

// TestErrorsAreRuncs: a call's error is what runc logged, and deleting a missing
// container succeeds.
func TestErrorsAreRuncs(t *testing.T) {
	if _, err := Program(); err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	c := Container{ID: "x", Bundle: filepath.Join(dir, "bundle"), State: filepath.Join(dir, "state")}
	if err := c.WriteConfig(map[string]string{"ociVersion": "1.0.2"}); err != nil {
		t.Fatal(err)
	}
	if c.PID() != 0 || c.LastError() != NoLog {
		t.Errorf("before anything: pid %d, %s", c.PID(), c.LastError())
	}
	if err := c.Delete(context.Background(), host.Place{}); err != nil {
		t.Errorf("nothing to delete: %v", err)
	}
	err := c.Run(context.Background(), host.Place{}, nil, "start", c.ID)
	if err == nil || !strings.Contains(err.Error(), "runc start: ") || !strings.Contains(err.Error(), "does not exist") {
		t.Errorf("starting a missing container: %v", err)
	}
	if err := os.WriteFile(c.PIDFile(), []byte("42"), 0o600); err != nil {
		t.Fatal(err)
	}
	if c.PID() != 42 {
		t.Errorf("pid %d", c.PID())
	}
	if err := c.WriteConfig(nil); err != nil || c.PID() != 0 || c.LastError() != NoLog {
		t.Errorf("again: %v, pid %d, %s", err, c.PID(), c.LastError())
	}
}
