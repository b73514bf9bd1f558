// SPDX-License-Identifier: Apache-2.0

package manifest_test

import (
	"strings"
	"testing"

	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/manifest"
)

const object = `
apiVersion: drayage.io/v1alpha1
kind: Chain
metadata: {name: one, namespace: ran}
spec:
  functions:
  - {name: a, ports: [{name: p0, face: native}]}
  - {name: b, ports: [{name: p0, face: native}]}
  links: [{name: ab, ends: [a.p0, b.p0], requires: {latency: 1ms, packet_loss_ratio: 1e-3}}]
`

// readChain reads and parses a chain.
func readChain(file string, data []byte) (*chain.Chain, error) {
	name, spec, err := manifest.Read(file, data)
	if err != nil {
		return nil, err
	}
	return manifest.Parse(name, spec)
}

func TestReadTakesManifestsAndChainFiles(t *testing.T) {
	for name, text := range map[string]string{
		"one":       object,
		"one again": "apiVersion: v1\nkind: Namespace\nmetadata: {name: ran}\n---" + object + "---\n",
		"c":         two("", "", ", requires: {latency: 1ms}"),
	} {
		c, err := readChain("file", []byte(text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if want, _, _ := strings.Cut(name, " "); c.Name != want || len(c.Links) != 1 || c.Links[0].Requires.Latency == 0 || c.Functions[0].Runtime != chain.RuntimeExternal {
			t.Errorf("%s: %+v", name, c)
		}
	}
}

func TestReadSaysWhatIsWrong(t *testing.T) {
	for text, want := range map[string]string{
		object + "---" + object:                    "file holds 2 Chains: write one to a file of its own",
		strings.Replace(object, "a.p0", "a.p7", 1): `spec.links[0].ends[0]: there is no port "a.p7"`,
		"apiVersion: v1\nkind: Pod\n":              "file:1:",
		"{":                                        "file:1:",
	} {
		if _, err := readChain("file", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v\nwant %s", err, want)
		}
	}
}
