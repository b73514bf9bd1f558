// SPDX-License-Identifier: Apache-2.0

package chain

import _ "embed"

//go:generate go run ./refgen ../../../docs/chain-reference.md

//go:embed chain.schema.json
var schema []byte

// Schema is the JSON Schema (draft 2020-12) of a chain file. It knows the form
// of every field; what fields say about each other is mostly for Parse to judge.
func Schema() []byte { return append([]byte(nil), schema...) }
