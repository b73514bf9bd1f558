// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strconv"

	"github.com/drayage/dray/internal/spec/layout"
)

// Schemas of the documents that commands print with --json; docs/json.md describes
// each. The number counts the changes visible to a reader.
const (
	schemaError           = "dray.error/1"
	schemaInventory       = "dray.inventory/1"
	schemaPreparation     = "dray.preparation/1"
	schemaPlan            = "dray.plan/1"
	schemaChain           = "dray.chain/1"
	schemaStatus          = "dray.status/1"
	schemaDifference      = "dray.difference/1"
	schemaLink            = "dray.link/1"
	schemaRemoved         = "dray.removed/1"
	schemaRun             = "dray.run/2"
	schemaBench           = "dray.bench/1"
	schemaExperiments     = "dray.experiments/1"
	schemaBenchPlan       = "dray.bench-plan/1"
	schemaExperimentsPlan = "dray.experiments-plan/1"
	schemaBenchList       = "dray.bench-list/1"
	schemaComparison      = "dray.comparison/1"
	schemaCalibrations    = "dray.calibrations/1"
	schemaImages          = "dray.images/1"
	schemaImage           = "dray.image/1"
	schemaCapture         = "dray.capture/1"
	schemaTrace           = "dray.trace/1"
	schemaSample          = "dray.sample/1"
	schemaField           = "dray.field/1"
	schemaStarter         = "dray.starter/1"
	schemaVersion         = "dray.version/1"
	schemaManifest        = "dray.manifest/1"
	schemaImport          = "dray.import/1"
	schemaDescriptor      = "dray.descriptor/1"
	schemaCluster         = "dray.cluster/1"
	schemaClusterPlan     = "dray.cluster-plan/1"
	schemaClusterReport   = "dray.cluster-report/1"
)

// printJSON prints a command's result as a document. v must be an object.
func (a *app) printJSON(schema string, v any) error {
	text, err := withSchema(schema, v)
	if err != nil {
		return err
	}
	a.printed = true
	var indented bytes.Buffer
	if err := json.Indent(&indented, text, "", "  "); err != nil {
		return err
	}
	indented.WriteByte('\n')
	_, err = a.out.Write(indented.Bytes())
	return err
}

// printLine prints one document of a command that prints several.
func (a *app) printLine(schema string, v any) error {
	text, err := withSchema(schema, v)
	if err != nil {
		return err
	}
	_, err = a.out.Write(append(text, '\n'))
	return err
}

// printPage prints a document that a result writes itself.
func (a *app) printPage(schema string, write func(io.Writer) error) error {
	var text bytes.Buffer
	if err := write(&text); err != nil {
		return err
	}
	return a.printJSON(schema, json.RawMessage(text.Bytes()))
}

// documentStart is where an object's fields begin. Result files of runs begin with
// the number of the file's own schema.
var documentStart = regexp.MustCompile(`^\{("schema":[0-9]+,?)?`)

// withSchema is v as JSON, with the schema as its first field.
func withSchema(schema string, v any) ([]byte, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	opening := documentStart.Find(text)
	if opening == nil {
		return nil, fmt.Errorf("a document of schema %s is not an object", schema)
	}
	head, rest := `{"schema":`+strconv.Quote(schema), text[len(opening):]
	if string(rest) != "}" {
		head += ","
	}
	return layout.PlainJSON(append([]byte(head), rest...)), nil
}
