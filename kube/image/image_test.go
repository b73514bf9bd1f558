// SPDX-License-Identifier: Apache-2.0

package image

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// folder makes the contents of an image; its times differ from call to call.
func folder(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for name, content := range map[string]string{"bin/tool": "#!/bin/sh\n", "etc/passwd": "root:x:0:0::/:\n"} {
		if err := os.MkdirAll(filepath.Join(root, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, name), []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("bin", filepath.Join(root, "sbin")); err != nil {
		t.Fatal(err)
	}
	return root
}

func write(t *testing.T, img Image) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := Write(&out, img); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func files(t *testing.T, archive []byte) map[string][]byte {
	t.Helper()
	found := map[string][]byte{}
	for in := tar.NewReader(bytes.NewReader(archive)); ; {
		header, err := in.Next()
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Fatal(err)
		}
		if found[header.Name], err = io.ReadAll(in); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTheSameFolderGivesTheSameBytes(t *testing.T) {
	one := write(t, Image{Name: "a/b:1", Root: folder(t), Architecture: "amd64"})
	other := folder(t)
	if err := os.Chtimes(filepath.Join(other, "bin/tool"), time.Unix(1, 2), time.Unix(3, 4)); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(one, write(t, Image{Name: "a/b:1", Root: other, Architecture: "amd64"})) {
		t.Error("the archives differ")
	}
}

// TestBlobsAreWhatDescriptorsSay follows the OCI index and Docker's manifest to the layer.
func TestBlobsAreWhatDescriptorsSay(t *testing.T) {
	found := files(t, write(t, Image{Name: "a/b:1", Root: folder(t), Architecture: "arm64", Config: Config{User: "1000", Entrypoint: []string{"/bin/tool"}}}))
	for name, content := range found {
		if digest, ok := strings.CutPrefix(name, "blobs/sha256/"); ok {
			if sum := sha256.Sum256(content); hex.EncodeToString(sum[:]) != digest {
				t.Errorf("%s holds something else", name)
			}
		}
	}
	var index struct{ Manifests []descriptor }
	decode(t, found["index.json"], &index)
	if len(index.Manifests) != 1 || index.Manifests[0].Annotations["io.containerd.image.name"] != "a/b:1" || index.Manifests[0].Annotations["org.opencontainers.image.ref.name"] != "1" {
		t.Fatalf("index: %+v", index)
	}
	var manifest struct {
		Config descriptor
		Layers []descriptor
	}
	decode(t, found[index.Manifests[0].blob()], &manifest)
	var docker []struct {
		Config           string
		RepoTags, Layers []string
	}
	decode(t, found["manifest.json"], &docker)
	if docker[0].Config != manifest.Config.blob() || docker[0].Layers[0] != manifest.Layers[0].blob() || docker[0].RepoTags[0] != "a/b:1" {
		t.Errorf("Docker's manifest %+v and the OCI manifest %+v differ", docker, manifest)
	}
	var config struct {
		Architecture string
		Config       Config
		RootFS       struct {
			DiffIDs []string `json:"diff_ids"`
		}
	}
	decode(t, found[manifest.Config.blob()], &config)
	if config.Architecture != "arm64" || config.Config.User != "1000" || config.RootFS.DiffIDs[0] != manifest.Layers[0].Digest {
		t.Errorf("config: %+v", config)
	}
	layer := files(t, found[manifest.Layers[0].blob()])
	if string(layer["bin/tool"]) != "#!/bin/sh\n" || len(layer) != 5 {
		t.Errorf("layer: %q", layer)
	}
}

func decode(t *testing.T, text []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
}

func TestEntriesBelongToRootAndKeepTheirModes(t *testing.T) {
	var out bytes.Buffer
	if err := Layer(&out, folder(t), time.Unix(7, 0)); err != nil {
		t.Fatal(err)
	}
	want := []string{"bin/", "bin/tool", "etc/", "etc/passwd", "sbin"}
	in := tar.NewReader(&out)
	for _, name := range want {
		header, err := in.Next()
		if err != nil {
			t.Fatal(err)
		}
		if header.Name != name || header.Uid != 0 || header.Gid != 0 || header.Uname != "" || header.ModTime.Unix() != 7 {
			t.Errorf("want %s of root at 7: %+v", name, header)
		}
		if name == "bin/tool" && header.Mode != 0o755 || name == "sbin" && header.Linkname != "bin" {
			t.Errorf("%+v", header)
		}
	}
}

func TestRefusals(t *testing.T) {
	root := folder(t)
	if err := Write(io.Discard, Image{Root: root, Architecture: "amd64"}); err == nil {
		t.Error("an image without a name was written")
	}
	if err := Write(io.Discard, Image{Name: "a:1", Root: filepath.Join(root, "none"), Architecture: "amd64"}); !os.IsNotExist(err) {
		t.Errorf("a folder that does not exist: %v", err)
	}
	if err := syscall.Mkfifo(filepath.Join(root, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Write(io.Discard, Image{Name: "a:1", Root: root, Architecture: "amd64"}); err == nil || !strings.Contains(err.Error(), "pipe") {
		t.Errorf("a pipe: %v", err)
	}
}
