// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"path/filepath"
	"testing"
)

func TestExamplesParse(t *testing.T) {
	files, err := filepath.Glob("../../examples/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples found: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			if _, err := Load(file); err != nil {
				t.Error(err)
			}
		})
	}
}
