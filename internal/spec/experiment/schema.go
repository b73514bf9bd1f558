// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/parse"
	"github.com/drayage/dray/internal/spec/schema"
)

// Schema is the JSON Schema (draft 2020-12) of an experiment's file.
func Schema() []byte {
	root := parse.ObjectSchema("experiment", "A published experiment: the published results, how each figure is measured here, and which relations should hold on any machine.", fields)
	own := schema.Schema{
		{Name: "row", Value: append(parse.ObjectSchema("row", "", rowFields), schema.Rules(rowRules)...)},
		{Name: "cell", Value: append(parse.ObjectSchema("cell", "", cellFields), schema.Rules(cellRules)...)},
		{Name: "claim", Value: append(parse.ObjectSchema("claim", "", claimFields), schema.Rules(claimRules)...)},
	}
	return parse.DocumentSchema("experiment.schema.json", root, append(own, chain.Definitions()...))
}

// rowRules: a row is measured, or says why not.
const rowRules = `{
	  "oneOf": [
	    {
	      "required": [
	        "cell",
	        "figure"
	      ]
	    },
	    {
	      "required": [
	        "not_run"
	      ],
	      "properties": {
	        "differs": false,
	        "figure": false,
	        "value": false
	      }
	    }
	  ]
	}`

// cellRules: some fields depend on others.
const cellRules = `{
	  "dependentRequired": {
	    "far_queue": [
	      "queue"
	    ]
	  },
	  "dependentSchemas": {
	    "batch": {
	      "properties": {
	        "face": {
	          "const": "netdev"
	        }
	      }
	    },
	    "vm_runtime": {
	      "required": [
	        "runtime"
	      ],
	      "properties": {
	        "runtime": {
	          "const": "vm"
	        }
	      }
	    },
	    "nohz_full": {
	      "properties": {
	        "runtime": {
	          "const": "vm"
	        }
	      }
	    },
	    "memory": {
	      "properties": {
	        "runtime": {
	          "const": "vm"
	        }
	      }
	    },
	    "at": {
	      "required": [
	        "qdisc"
	      ],
	      "properties": {
	        "transport": {
	          "const": "ovs"
	        },
	        "qdisc": {
	          "enum": [
	            "htb",
	            "hfsc",
	            "sfq",
	            "codel",
	            "fq_codel"
	          ]
	        },
	        "queue": false,
	        "far_queue": false
	      }
	    }
	  }
	}`

// claimRules: a claim has one of three forms.
const claimRules = `{
	  "dependentRequired": {
	    "less": [
	      "than"
	    ],
	    "than": [
	      "less"
	    ],
	    "times": [
	      "less"
	    ],
	    "same": [
	      "within"
	    ],
	    "within": [
	      "same"
	    ]
	  },
	  "oneOf": [
	    {
	      "required": [
	        "less"
	      ]
	    },
	    {
	      "required": [
	        "same"
	      ]
	    },
	    {
	      "required": [
	        "order"
	      ]
	    }
	  ]
	}`
