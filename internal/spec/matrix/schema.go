// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/parse"
	"github.com/drayage/dray/internal/spec/schema"
)

// Schema is the JSON Schema (draft 2020-12) of a matrix file.
func Schema() []byte {
	root := parse.ObjectSchema("matrix", "A matrix of measurements for `dray bench`: every combination of its lists' items is a configuration, and each is measured at every load.", fields)
	own := schema.Schema{}.With("transport", schema.Enum(Transports()))
	return parse.DocumentSchema("bench.schema.json", root, append(own, chain.Definitions()...))
}
