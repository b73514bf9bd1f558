// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/drayage/dray/internal/spec/manifest"
)

// Relinking is another transport for one link of a chain.
type Relinking struct {
	Spec  json.RawMessage // of the chain with it
	Was   string          // what the spec names now; "": nothing
	chain *Chain
	patch []byte // RFC 6902
}

// Relinking is the change of the chain's spec that gives a link another transport.
func (c *Chain) Relinking(link, transport string) (*Relinking, error) {
	spec, links, err := c.specLinks()
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(links, func(l map[string]any) bool { return l["name"] == link })
	if i < 0 {
		return nil, fmt.Errorf("the spec of chain %s has no link %q, only %s", c.Name(), link, strings.Join(c.LinksOfSpec(), ", "))
	}
	r := &Relinking{chain: c}
	r.Was, _ = links[i]["transport"].(string)
	links[i]["transport"] = transport
	if spec["links"], err = json.Marshal(links); err != nil {
		return nil, err
	}
	if r.Spec, err = json.Marshal(spec); err != nil {
		return nil, err
	}
	r.patch, err = json.Marshal([]map[string]any{
		{"op": "test", "path": "/metadata/generation", "value": c.Metadata.Generation}, // the spec is as it was planned
		{"op": "add", "path": fmt.Sprintf("/spec/links/%d/transport", i), "value": transport},
	})
	return r, err
}

// specLinks is the chain's spec with its links.
func (c *Chain) specLinks() (spec map[string]json.RawMessage, links []map[string]any, err error) {
	if err = json.Unmarshal(c.Spec, &spec); err == nil {
		err = json.Unmarshal(spec["links"], &links)
	}
	return spec, links, err
}

// LinksOfSpec are the names of the links in the chain's spec: instances of a function share one.
func (c *Chain) LinksOfSpec() (names []string) {
	_, links, err := c.specLinks()
	if err != nil {
		return nil // the API server has checked the spec
	}
	for _, l := range links {
		names = append(names, fmt.Sprint(l["name"]))
	}
	return names
}

// Relink changes the spec of a chain.
func (k *Kubectl) Relink(ctx context.Context, r *Relinking) error {
	at := r.chain.Metadata
	_, err := k.output(ctx, "patch", "--namespace="+at.Namespace, "--type=json", "--patch="+string(r.patch), "--", manifest.Resource, at.Name)
	return err
}
