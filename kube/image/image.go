// SPDX-License-Identifier: Apache-2.0

// Package image writes container images of one layer from a folder, without a daemon or a registry. The same
// folder always gives the same bytes.
package image

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"path"
	"strings"
	"time"
)

// Image describes an image. Every file of its layer belongs to root and carries the time Created.
type Image struct {
	Name         string    // the full reference, e.g. "dray.local/pause:1"
	Root         string    // the folder whose contents become the layer
	Architecture string    // as Go names it, e.g. "amd64"
	Created      time.Time // the zero value means 1970
	Config       Config
}

// Config is what a runtime reads from an image. Its fields and their JSON names are those of the OCI image
// specification.
type Config struct {
	User       string            `json:"User,omitempty"`
	Env        []string          `json:"Env,omitempty"`
	Entrypoint []string          `json:"Entrypoint,omitempty"`
	Cmd        []string          `json:"Cmd,omitempty"`
	WorkingDir string            `json:"WorkingDir,omitempty"`
	Labels     map[string]string `json:"Labels,omitempty"`
}

// Media types of the OCI image specification.
const (
	typeIndex    = "application/vnd.oci.image.index.v1+json"
	typeManifest = "application/vnd.oci.image.manifest.v1+json"
	typeConfig   = "application/vnd.oci.image.config.v1+json"
	typeLayer    = "application/vnd.oci.image.layer.v1.tar"
)

type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int64             `json:"size"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// blob is the path of the described content within the archive.
func (d descriptor) blob() string {
	return path.Join("blobs/sha256", strings.TrimPrefix(d.Digest, "sha256:"))
}

// Write writes the image to w as one archive that is both an OCI image layout and what `docker save` writes, so
// that ctr, docker, podman and skopeo read it.
func Write(w io.Writer, img Image) error {
	if img.Name == "" || img.Architecture == "" {
		return errors.New("an image needs a name and an architecture")
	}
	if img.Created.IsZero() {
		img.Created = time.Unix(0, 0)
	}
	layer, err := measure(img)
	if err != nil {
		return err
	}
	parts, err := documents(img, layer)
	if err != nil {
		return err
	}
	out := tar.NewWriter(w)
	for _, p := range parts {
		if err := out.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: p.name, Mode: 0o644, Size: int64(len(p.content)), ModTime: img.Created}); err != nil {
			return err
		}
		if _, err := out.Write(p.content); err != nil {
			return err
		}
	}
	if err := writeLayer(out, img, layer); err != nil {
		return err
	}
	return out.Close()
}

// counter counts and hashes what is written to it.
type counter struct {
	hash hash.Hash
	size int64
}

func (c *counter) Write(p []byte) (int, error) {
	c.size += int64(len(p))
	return c.hash.Write(p)
}

func (c *counter) descriptor(mediaType string) descriptor {
	return descriptor{MediaType: mediaType, Digest: "sha256:" + hex.EncodeToString(c.hash.Sum(nil)), Size: c.size}
}

// measure reads the folder once for the digest and size of its layer: an archive states both ahead of the
// content, and a layer may be too large to keep in memory.
func measure(img Image) (descriptor, error) {
	c := &counter{hash: sha256.New()}
	err := Layer(c, img.Root, img.Created)
	return c.descriptor(typeLayer), err
}

// writeLayer reads the folder again, and fails if it has changed since it was measured.
func writeLayer(out *tar.Writer, img Image, layer descriptor) error {
	if err := out.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: layer.blob(), Mode: 0o644, Size: layer.Size, ModTime: img.Created}); err != nil {
		return err
	}
	c := &counter{hash: sha256.New()}
	if err := Layer(io.MultiWriter(out, c), img.Root, img.Created); err != nil {
		return err
	}
	if c.descriptor(typeLayer).Digest != layer.Digest {
		return fmt.Errorf("%s changed while it was read", img.Root)
	}
	return nil
}

type part struct {
	name    string
	content []byte
}

// documents are the files of the archive that describe the layer.
func documents(img Image, layer descriptor) ([]part, error) {
	type rootfs struct {
		Type    string   `json:"type"`
		DiffIDs []string `json:"diff_ids"`
	}
	config, err := json.Marshal(struct {
		Created      time.Time `json:"created"`
		Architecture string    `json:"architecture"`
		OS           string    `json:"os"`
		Config       Config    `json:"config"`
		RootFS       rootfs    `json:"rootfs"`
	}{img.Created.UTC(), img.Architecture, "linux", img.Config, rootfs{"layers", []string{layer.Digest}}})
	if err != nil {
		return nil, err
	}
	configAt := describe(typeConfig, config)
	manifest, err := json.Marshal(struct {
		SchemaVersion int          `json:"schemaVersion"`
		MediaType     string       `json:"mediaType"`
		Config        descriptor   `json:"config"`
		Layers        []descriptor `json:"layers"`
	}{2, typeManifest, configAt, []descriptor{layer}})
	if err != nil {
		return nil, err
	}
	manifestAt := describe(typeManifest, manifest)
	named := manifestAt
	named.Annotations = map[string]string{
		"io.containerd.image.name":          img.Name,
		"org.opencontainers.image.ref.name": img.Name[strings.LastIndex(img.Name, ":")+1:],
	}
	index, err := json.Marshal(struct {
		SchemaVersion int          `json:"schemaVersion"`
		MediaType     string       `json:"mediaType"`
		Manifests     []descriptor `json:"manifests"`
	}{2, typeIndex, []descriptor{named}})
	if err != nil {
		return nil, err
	}
	docker, err := json.Marshal([]struct {
		Config   string
		RepoTags []string
		Layers   []string
	}{{configAt.blob(), []string{img.Name}, []string{layer.blob()}}})
	if err != nil {
		return nil, err
	}
	return []part{
		{"oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`)},
		{"index.json", index},
		{"manifest.json", docker},
		{manifestAt.blob(), manifest},
		{configAt.blob(), config},
	}, nil
}

func describe(mediaType string, content []byte) descriptor {
	c := &counter{hash: sha256.New()}
	// Neither a hash nor a counter fails to take what is written to it.
	_, _ = io.Copy(c, bytes.NewReader(content))
	return c.descriptor(mediaType)
}
