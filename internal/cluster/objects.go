// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/manifest"
)

// Manifests are where objects are described: files and directories, or a kustomization.
type Manifests struct {
	Files     []string // "-": standard input
	Kustomize string
}

// Object is an object of any kind.
type Object struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
		Deletion  string `json:"deletionTimestamp"`
	} `json:"metadata"`
	text json.RawMessage // with all fields
}

// UnmarshalJSON keeps the fields that Object does not name.
func (o *Object) UnmarshalJSON(text []byte) error {
	type fields Object
	o.text = bytes.Clone(text)
	return json.Unmarshal(text, (*fields)(o))
}

// Name is the object's name as kubectl prints it, such as "chain.drayage.io/f1".
func (o *Object) Name() string {
	resource := strings.ToLower(o.Kind)
	if group, _, named := strings.Cut(o.APIVersion, "/"); named {
		resource += "." + group
	}
	return resource + "/" + o.Metadata.Name
}

// key identifies an object in its cluster.
func (o *Object) key() [2]string { return [2]string{o.Metadata.Namespace, o.Name()} }

// IsChain reports whether the object is a Chain.
func (o *Object) IsChain() bool { return o.APIVersion == manifest.APIVersion && o.Kind == chain.Kind }

// Read returns the objects that manifests describe, each with its namespace.
func (k *Kubectl) Read(ctx context.Context, m Manifests) ([]Object, error) {
	args := append([]string{answerTime, "create", "--dry-run=client", "--validate=false", "--output=json"}, in(k.Namespace)...)
	for _, file := range m.Files {
		args = append(args, "--filename="+file)
	}
	if m.Kustomize != "" {
		args = append(args, "--kustomize="+m.Kustomize)
	}
	cmd := k.command(ctx, args...)
	if slices.Contains(m.Files, "-") {
		cmd.Stdin = os.Stdin
	}
	text, err := answer(ctx, cmd)
	if err != nil {
		return nil, err
	}
	return decode(text)
}

// decode reads what kubectl prints: objects one after the other, or a list of them.
func decode(text []byte) ([]Object, error) {
	var all []Object
	for d := json.NewDecoder(bytes.NewReader(text)); ; {
		var o Object
		err := d.Decode(&o)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		list := struct{ Items []Object }{[]Object{o}}
		if err == nil && o.Kind == "List" {
			err = json.Unmarshal(o.text, &list)
		}
		if err != nil {
			return nil, fmt.Errorf("kubectl printed no object: %w", err)
		}
		all = append(all, list.Items...)
	}
}

// Apply applies objects. It returns those that it created, even if it fails: an object
// that existed before is not among them.
func (k *Kubectl) Apply(ctx context.Context, all []Object) (created []Object, err error) {
	text, err := k.feed(ctx, all, "get", "--ignore-not-found", "--output=json")
	if err != nil {
		return nil, err
	}
	found, err := decode(text)
	if err == nil {
		err = context.Cause(ctx) // nothing has changed yet
	}
	if err != nil {
		return nil, err
	}
	existed := map[[2]string]bool{}
	for _, o := range found {
		if o.Metadata.Deletion != "" {
			return nil, &Error{Text: o.Name() + " is still being deleted", Fix: "kubectl wait --for=delete " + strings.Join(append(in(o.Metadata.Namespace), o.Name()), " ")}
		}
		existed[o.key()] = true
	}
	text, err = k.feed(ctx, all, "apply")
	// Another user may have created an object since: kubectl says then that it exists.
	answers := strings.Split(string(text), "\n")
	for _, o := range all {
		if !existed[o.key()] && slices.Contains(answers, o.Name()+" created") {
			created = append(created, o)
		}
	}
	return created, err
}

// deletionTime bounds how long pods may take to end, and a namespace to become empty.
const deletionTime = "--timeout=5m"

// Delete deletes objects, the last first, and waits until they are gone with all that
// belongs to them.
func (k *Kubectl) Delete(ctx context.Context, all []Object) error {
	all = slices.Clone(all)
	slices.Reverse(all)
	_, err := k.feed(ctx, all, "delete", "--ignore-not-found", "--cascade=foreground", deletionTime)
	return err
}

// feed runs kubectl on objects. It is not interrupted: what it changed would be unknown.
func (k *Kubectl) feed(ctx context.Context, all []Object, args ...string) ([]byte, error) {
	list := struct {
		APIVersion string            `json:"apiVersion"`
		Kind       string            `json:"kind"`
		Items      []json.RawMessage `json:"items"`
	}{APIVersion: "v1", Kind: "List"}
	for _, o := range all {
		list.Items = append(list.Items, o.text)
	}
	text, err := json.Marshal(list)
	if err != nil {
		return nil, err
	}
	ctx = context.WithoutCancel(ctx)
	cmd := k.command(ctx, append(append([]string{answerTime}, args...), "--filename=-")...)
	apart(cmd)
	cmd.Stdin = bytes.NewReader(text)
	return answer(ctx, cmd)
}
