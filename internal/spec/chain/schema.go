// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"iter"
	"maps"
	"slices"

	"github.com/drayage/dray/internal/spec/parse"
	"github.com/drayage/dray/internal/spec/schema"
	"github.com/drayage/dray/internal/spec/units"
)

//go:generate go run ../refgen ../../../docs

// Schema is the JSON Schema (draft 2020-12) of a chain file. It knows the form of every
// field; Parse judges most rules between fields.
func Schema() []byte {
	root := parse.ObjectSchema("chain", "A chain: functions that handle packets, the ports they see, the links between those ports, and what each link must do.", chainFields)
	return parse.DocumentSchema("chain.schema.json", append(root, schema.Rules(hostRules)...), Definitions())
}

// Definitions are the named schemas that the schemas of chains and other files refer
// to.
func Definitions() schema.Schema {
	return append(schema.Schema{
		{Name: "policy", Value: parse.ObjectSchema("policy", "What happens when a requirement cannot be met.", policyFields)},
		{Name: "hosts", Value: append(parse.ObjectSchema("hosts", "The simulated hosts of a chain. Links between functions on different hosts are tunnels over the underlay; their measurements are marked `simulated hosts`.", hostsFields), schema.Rules(hostsRules)...)},
		{Name: "machine", Value: append(parse.ObjectSchema("machine", "A host with its resources, so that functions can be placed on it.", machineFields), schema.Rules(machineRules)...)},
		{Name: "numa", Value: parse.ObjectSchema("numa", "A NUMA node of a machine: CPUs that share memory.", numaFields)},
		{Name: "line", Value: parse.ObjectSchema("line", "A line between two hosts.", lineFields)},
		{Name: "underlay", Value: parse.ObjectSchema("underlay", "The network between simulated hosts: a switch with one line to each host.", underlayFields)},
		{Name: "function", Value: append(parse.ObjectSchema("function", "A container or process that handles packets (a VNF or CNF).", functionFields), schema.Rules(functionRules)...)},
		{Name: "compute", Value: parse.ObjectSchema("compute", "The time that a function must get of each of its CPUs. The control group is given the share as its weight, and `dray run` judges it while the other functions on the CPU are busy.", computeFields)},
		{Name: "vm", Value: parse.ObjectSchema("vm", "The virtual machine of a function with runtime `vm`.", vmFields)},
		{Name: "hugepages", Value: parse.ObjectSchema("hugepages", "The maximum of huge pages of a function, by page size. With runtime `vm` only pages of 2Mi, and only with dpdk ports: they are part of the machine's memory, by default 512Mi.", hugePageFields)},
		{Name: "external", Value: append(parse.ObjectSchema("external", "A container or process that Drayage did not start: exactly one of the fields.", externalFields), schema.Rules(externalRules)...)},
		{Name: "port", Value: parse.ObjectSchema("port", "What a function sees of a link. Its properties never change while the function runs.", portFields)},
		{Name: "tun", Value: parse.ObjectSchema("tun", "A TUN interface of a function. Only its own program sees the packets: it is on no link.", tunFields)},
		{Name: "hold", Value: parse.ObjectSchema("hold", "Limits how many of its peer's buffers a native or dpdk port holds, on shared memory (transport shm).", holdFields)},
		{Name: "link", Value: parse.ObjectSchema("link", "Joins two or more ends and says what the link must do.", linkFields)},
		{Name: "packet-path", Value: parse.ObjectSchema("packet path", "A route of packets from a port through functions to another port, and what it must do from end to end.", pathFields)},
		{Name: "gtpu", Value: parse.ObjectSchema("path tunnels", "GTP-U tunnels (TS 29.281) at one end of a path, as between a gNB or UPF at that end and the function that ends them.", gtpuFields)},
		{Name: "path-requires", Value: append(parse.ObjectSchema("path requirements", "The requirements of a path, with its functions' own commands running. At least one.", pathRequiresFields), schema.Schema{{Name: "minProperties", Value: 1}}...)},
		{Name: "port-end", Value: schema.Described("port end", "A port, written \"function.port\".", schema.Pattern(`^[^.]+[.].+$`))},
		{Name: "fronthaul", Value: parse.ObjectSchema("fronthaul", "The downlink of an O-RAN fronthaul (O-RAN.WG4.CUS): in each slot a C-plane message per layer, then a U-plane message per symbol and layer.", fronthaulFields)},
		{Name: "fapi", Value: parse.ObjectSchema("fapi", "What a MAC tells its PHY about the downlink of each slot (5G FAPI PHY API, Small Cell Forum 222): a DL_TTI.request and a TX_DATA.request, both due at the slot's beginning.", fapiFields)},
		{Name: "messages", Value: parse.ObjectSchema("messages", "Messages that native ports pass in addition to packets: each is contiguous, and arrives whole.", messagesFields)},
		{Name: "end", Value: schema.Described("end", "A port, written \"function.port\", or an uplink, written {uplink: eth0}.", schema.OneOf(schema.Pattern(`^[^.]+[.].+$`), schema.Ref("uplink")))},
		{Name: "uplink", Value: parse.ObjectSchema("uplink", "A link end that is a host interface.", uplinkFields)},
		{Name: "requires", Value: parse.ObjectSchema("requires", "The requirements of a link. An omitted field requires nothing. The names follow ETSI GS NFV-SOL 001.", requiresFields)},
		{Name: "qos", Value: append(parse.ObjectSchema("qos", "A queueing discipline and its parameters, as in tc(8). A parameter of another discipline is refused. max_bitrate already sets a token bucket, so with it only a tbf, htb or prio whose rate and ceil are no higher is accepted. Ports with face native or dpdk on transport shm or ovs-dray queue what they send themselves; only they have prio, slot and classes.", qdiscFields), qdiscRules()...)},
		{Name: "class", Value: append(parse.ObjectSchema("traffic class", "A traffic class of what a port sends, and its queue.", classFields), classRules()...)},
		{Name: "name", Value: schema.Described("name", "1 to 32 characters of a-z, 0-9 and -, with no - at either end.", schema.Pattern(parse.NamePattern.String()))},
		{Name: "path", Value: schema.Described("path", "An absolute path without \".\", \"..\" or a trailing slash.", schema.Pattern("^/"))},
		{Name: "mtu", Value: schema.Described("mtu", "A number of bytes from 68 to 65535.", schema.Integer(minMTU, maxMTU))},
	}, units.Definitions()...)
}

// hostRules: in a chain with named hosts, each function names its host; in one without
// hosts, none does.
const hostRules = `{
	  "if": {
	    "properties": {
	      "hosts": {
	        "required": [
	          "names"
	        ]
	      }
	    },
	    "required": [
	      "hosts"
	    ]
	  },
	  "then": {
	    "properties": {
	      "functions": {
	        "items": {
	          "required": [
	            "host"
	          ]
	        }
	      }
	    }
	  },
	  "else": {
	    "if": {
	      "required": [
	        "hosts"
	      ]
	    },
	    "else": {
	      "properties": {
	        "functions": {
	          "items": {
	            "properties": {
	              "host": false
	            }
	          }
	        }
	      }
	    }
	  }
	}`

// hostsRules: hosts have names, or are described as machines, which lines can join.
const hostsRules = `{
	  "if": {
	    "required": [
	      "machines"
	    ]
	  },
	  "then": {
	    "properties": {
	      "names": false
	    }
	  },
	  "else": {
	    "required": [
	      "names"
	    ],
	    "properties": {
	      "lines": false
	    }
	  }
	}`

// machineRules: a machine has CPUs, or NUMA nodes that have.
const machineRules = `{
	  "if": {
	    "required": [
	      "numa"
	    ]
	  },
	  "then": {
	    "properties": {
	      "cpus": false,
	      "memory": false
	    }
	  },
	  "else": {
	    "required": [
	      "cpus"
	    ]
	  }
	}`

// functionRules: each runtime has its own fields.
const functionRules = `{
	  "allOf": [
	    {
	      "if": {
	        "properties": {
	          "runtime": {
	            "const": "docker"
	          }
	        },
	        "required": [
	          "runtime"
	        ]
	      },
	      "then": {
	        "required": [
	          "image"
	        ]
	      },
	      "else": {
	        "properties": {
	          "image": false
	        }
	      }
	    },
	    {
	      "if": {
	        "properties": {
	          "runtime": {
	            "const": "runc"
	          }
	        }
	      },
	      "else": {
	        "properties": {
	          "rootfs": false
	        }
	      }
	    },
	    {
	      "if": {
	        "properties": {
	          "runtime": {
	            "const": "external"
	          }
	        },
	        "required": [
	          "runtime"
	        ]
	      },
	      "then": {
	        "required": [
	          "external"
	        ],
	        "properties": {
	          "command": false,
	          "env": false,
	          "cpus": false,
	          "compute": false,
	          "memory": false,
	          "pids": false,
	          "hugepages": false,
	          "restart": false,
	          "tuns": false,
	          "sctp": false
	        }
	      },
	      "else": {
	        "properties": {
	          "external": false
	        }
	      }
	    },
	    {
	      "if": {
	        "properties": {
	          "runtime": {
	            "const": "vm"
	          }
	        },
	        "required": [
	          "runtime"
	        ]
	      },
	      "then": {
	        "properties": {
	          "compute": false,
	          "sctp": false,
	          "hugepages": {
	            "properties": {
	              "1Gi": false
	            }
	          },
	          "tuns": false
	        },
	        "if": {
	          "properties": {
	            "ports": {
	              "contains": {
	                "properties": {
	                  "face": {
	                    "const": "dpdk"
	                  }
	                },
	                "required": [
	                  "face"
	                ]
	              }
	            }
	          },
	          "required": [
	            "ports"
	          ]
	        },
	        "else": {
	          "properties": {
	            "hugepages": false
	          }
	        }
	      },
	      "else": {
	        "properties": {
	          "vm": false
	        }
	      }
	    }
	  ]
	}`

// externalRules: exactly one field names the running thing.
const externalRules = `{
	  "minProperties": 1,
	  "maxProperties": 1
	}`

// qdiscRules: each discipline has its own parameters; a switch supports only some.
func qdiscRules() schema.Schema {
	var all []schema.Schema
	for _, k := range qdiscKinds {
		foreign := schema.Schema{}
		for _, f := range qdiscFields {
			if f.Name != "qdisc" && f.Name != "at" && !slices.Contains(k.parameters, f.Name) {
				foreign = foreign.With(f.Name, false)
			}
		}
		then := properties(foreign)
		if len(k.required) > 0 {
			then = then.With("required", k.required)
		}
		all = append(all, when("qdisc", k.kind, then))
	}
	child := schema.Schema{}.With("qdisc", schema.Enum(QueueKinds)).With("at", false)
	bySwitch := schema.Schema{}.With("qdisc", schema.Enum(SwitchKinds)).With("child", false).With("ecn", false)
	for kind, own := range sortedClassParameters() {
		all = append(all, when("qdisc", kind, properties(schema.Schema{}.With("classes", schema.Schema{}.With("items", classOf(own)))), "classes"))
	}
	all = append(all,
		properties(schema.Schema{}.With("child", properties(child))),
		when("at", string(AtSwitch), properties(bySwitch), "at"),
		when("qdisc", "sfq", properties(schema.Schema{}.With("limit", false).With("at", schema.Const(string(AtPort)))), "limit", "at"),
		when("qdisc", "tbf", properties(schema.Schema{}.With("latency", false)), "child"),
		when("qdisc", "htb", properties(schema.Schema{}.With("child", false).With("ceil", false)), "classes"),
		when("qdisc", "hfsc", properties(schema.Schema{}.With("child", false)), "classes"),
		when("qdisc", "prio", schema.Schema{}.With("required", []string{"rate"}), "burst"),
	)
	return schema.Schema{}.With("allOf", all)
}

// sortedClassParameters are the kinds with classes, in order.
func sortedClassParameters() iter.Seq2[string, []string] {
	return func(yield func(string, []string) bool) {
		for _, kind := range slices.Sorted(maps.Keys(classParameters)) {
			if !yield(kind, classParameters[kind]) {
				return
			}
		}
	}
}

// classOf is a class with no other parameters than its discipline's.
func classOf(own []string) schema.Schema {
	foreign := schema.Schema{}
	for _, f := range classFields {
		if !slices.Contains(commonClassFields, f.Name) && !slices.Contains(own, f.Name) {
			foreign = foreign.With(f.Name, false)
		}
	}
	s := properties(foreign)
	if slices.Contains(own, "rate") {
		s = s.With("required", []string{"rate"})
	}
	return s
}

// classRules: peak and peak_time belong together, and a child does not shape.
func classRules() schema.Schema {
	child := schema.Schema{}.With("qdisc", schema.Enum(QueueKinds)).With("at", false)
	both := schema.Schema{}.With("peak", []string{"peak_time"}).With("peak_time", []string{"peak"})
	return schema.Schema{}.With("dependentRequired", both).With("allOf", []schema.Schema{properties(schema.Schema{}.With("child", properties(child)))})
}

func properties(fields schema.Schema) schema.Schema {
	return schema.Schema{}.With("properties", fields)
}

// when applies a schema to an object whose field has the value, and which has the other
// named fields.
func when(field, value string, then schema.Schema, also ...string) schema.Schema {
	condition := properties(schema.Schema{}.With(field, schema.Const(value)))
	if len(also) > 0 {
		condition = condition.With("required", also)
	}
	return schema.Schema{}.With("if", condition).With("then", then)
}
