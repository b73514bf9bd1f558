// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/drayage/dray/internal/spec/chain"
	"go.yaml.in/yaml/v3"
)

// Read reads the one Chain of a manifest, or a chain file as the object that it would
// become: its name and its spec.
func Read(file string, data []byte) (name string, spec []byte, err error) {
	found, err := objects(data)
	if err != nil || len(found) == 0 { // the decoder of chain files says what is wrong with the text
		m, err := Make(file, data)
		if err != nil {
			return "", nil, err
		}
		if found, err = objects([]byte(m.YAML)); err != nil {
			return "", nil, err
		}
	}
	if len(found) != 1 {
		return "", nil, fmt.Errorf("%s holds %d Chains: write one to a file of its own", file, len(found))
	}
	spec, err = json.Marshal(found[0].Spec)
	if err != nil {
		return "", nil, fmt.Errorf("%s: %w", file, err)
	}
	return found[0].Metadata.Name, spec, nil
}

// parsed is an object Chain in a manifest.
type parsed struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string `yaml:"kind"`
	Metadata   struct {
		Name string `yaml:"name"`
	} `yaml:"metadata"`
	Spec any `yaml:"spec"`
}

// objects are the Chains of a manifest with any number of documents.
func objects(data []byte) ([]parsed, error) {
	var found []parsed
	for d := yaml.NewDecoder(bytes.NewReader(data)); ; {
		var o parsed
		switch err := d.Decode(&o); {
		case errors.Is(err, io.EOF):
			return found, nil
		case err != nil:
			return nil, err
		}
		if o.APIVersion == APIVersion && o.Kind == chain.Kind {
			found = append(found, o)
		}
	}
}
