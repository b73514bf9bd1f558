// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/drayage/dray/internal/function/docker/dockertest"
	"github.com/drayage/dray/internal/function/image"
	"github.com/drayage/dray/test/testenv"
)

// TestImages builds images and runs functions in them: all programs, and packets
// over interfaces and DPDK devices. Each build needs a Debian mirror and up to a
// minute, so DRAY_TEST_IMAGES lists the images to build, separated by blanks;
// docker also gets "iperf".
func TestImages(t *testing.T) {
	t.Parallel()
	names := strings.Fields(os.Getenv("DRAY_TEST_IMAGES"))
	if len(names) == 0 {
		t.Skip("DRAY_TEST_IMAGES names no image; one takes up to a minute")
	}
	testenv.Program(t, "runc")
	if err := image.Missing(); err != nil { // only requested images are tested
		t.Fatal(err)
	}
	folder, err := os.MkdirTemp("/var/tmp", "dray-test-images-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(folder); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	needDPDK(t) // one image's programs are next to the driver
	for _, name := range names {
		t.Run(name, func(t *testing.T) { testImage(t, folder, name) })
	}
}

func testImage(t *testing.T, folder, name string) {
	recipe, err := image.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	b := newDPDKBench(t)
	b.env = append(b.env, "DRAY_IMAGES="+folder)
	archive := filepath.Join(folder, name+".tar")
	var built struct{ Rootfs string }
	if err := json.Unmarshal([]byte(b.want(0, "image", name, "--tar", archive, "--json").Stdout), &built); err != nil || built.Rootfs == "" {
		t.Fatalf("%v: %+v", err, built)
	}
	from := "runtime: runc, rootfs: " + built.Rootfs
	t.Run("its program", func(t *testing.T) {
		chain := "img-" + name
		b.want(0, "up", b.file(imagePair(chain, from)))
		defer b.want(0, "down", chain)
		out := b.want(0, append([]string{"exec", chain, "a", "--"}, recipe.Try...)...)
		if !strings.Contains(out.Stdout+out.Err, recipe.Shows) {
			t.Errorf("it prints no %q: %s", recipe.Shows, out)
		}
		if name == "iperf" {
			b.streams(chain)
		}
	})
	if name == "iperf" {
		t.Run("docker", func(t *testing.T) {
			client := dockertest.Start(t)
			b.env = append(b.env, "DOCKER_HOST="+client.Host)
			if out, err := client.Command(context.Background(), "import", archive, "dray-iperf").CombinedOutput(); err != nil {
				t.Fatalf("docker import: %v: %s", err, out)
			}
			b.want(0, "up", b.file(imagePair("img-docker", "runtime: docker, image: dray-iperf")))
			defer b.want(0, "down", "img-docker")
			b.streams("img-docker")
		})
	}
	if name == "dpdk" {
		t.Run("testpmd", func(t *testing.T) {
			for _, transport := range []string{"shm", "memif"} {
				chain, text := "img-"+transport, testpmds("img-"+transport, transport, "runtime: runc")
				b.want(0, "up", b.file(strings.ReplaceAll(text, "runtime: runc", "runtime: runc\n    rootfs: "+built.Rootfs)))
				b.receives(chain)
				b.want(0, "down", chain)
			}
		})
	}
}

// imagePair are two functions in an image, and their link.
func imagePair(name, from string) string {
	return fmt.Sprintf(`
apiVersion: drayage/v1
kind: Chain
name: %s
functions:
  - {name: a, %s, command: [sleep, infinity], ports: [{name: p0, ip: 10.77.0.1/24}]}
  - {name: b, %s, command: [sleep, infinity], ports: [{name: p0, ip: 10.77.0.2/24}]}
links:
  - {name: ab, ends: [a.p0, b.p0], transport: veth}
`, name, from, from)
}

// streams sends between the functions with the image's own iperf3.
func (b *bench) streams(chain string) {
	b.t.Helper()
	b.want(0, "exec", chain, "b", "--", "iperf3", "--server", "--daemon")
	var r result
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		r = b.dray("exec", chain, "a", "--", "iperf3", "--client", "10.77.0.2", "--bytes", "4M", "--json")
		if r.Code == 0 {
			break
		}
	}
	var got struct {
		End struct {
			SumReceived struct{ Bytes float64 } `json:"sum_received"`
		}
	}
	if err := json.Unmarshal([]byte(r.Stdout), &got); err != nil || got.End.SumReceived.Bytes == 0 { // it counts arrivals when the client ends
		b.t.Errorf("%v: %v bytes arrived: %s", err, got.End.SumReceived.Bytes, r)
	}
}
