// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"testing"

	"github.com/drayage/dray/internal/spec/parse/parsetest"
)

var document = parsetest.Kind{Name: Kind, Schema: Schema, Parse: func(file string, data []byte) error {
	_, err := Parse(file, data)
	return err
}}

func TestBadFiles(t *testing.T) { document.BadFiles(t, 100) }
