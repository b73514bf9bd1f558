// SPDX-License-Identifier: Apache-2.0

// Package experiments holds what is to be measured, as files.
package experiments

import _ "embed"

//go:embed bench-quick.yaml
var benchQuick []byte

// BenchQuick is the matrix of `dray bench quick`.
func BenchQuick() []byte { return append([]byte(nil), benchQuick...) }
