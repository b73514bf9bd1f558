// SPDX-License-Identifier: Apache-2.0

package nodeagent

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	cdi "tags.cncf.io/container-device-interface/specs-go"

	"github.com/drayage/dray/internal/function/runtime"
	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/link/afxdp"
	"github.com/drayage/dray/internal/link/dpdkring"
	"github.com/drayage/dray/internal/link/memif"
	"github.com/drayage/dray/internal/link/ovsdpdk"
	"github.com/drayage/dray/internal/link/vhostuser"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/dpdk"
	"github.com/drayage/dray/internal/spec/inventory"
	"github.com/drayage/dray/internal/spec/units"
	"github.com/drayage/dray/kube/internal/claims"
	"github.com/drayage/dray/kube/internal/eal"
)

// settingOf is what a pod's spec says of the application that has the claim's
// dpdk ports; nil if it has none. A setting holds the limits of one container,
// so only one can have them.
func settingOf(pod *corev1.Pod, c *claims.Claim) (*eal.Setting, error) {
	var s eal.Setting
	for i := range c.Ports {
		if p := &c.Ports[i]; p.Link.Ends[p.End()].Face == chain.FaceDPDK {
			s.Vdevs = append(s.Vdevs, deviceOf(p))
		}
	}
	if len(s.Vdevs) == 0 {
		return nil, nil
	}
	containers := containersWith(pod, referenceOf(pod, c.Name))
	if len(containers) != 1 {
		return nil, fmt.Errorf("%d containers of pod %s use claim %s, which has dpdk ports: name it in resources.claims of the DPDK application alone",
			len(containers), pod.Name, c.Name)
	}
	limits := limitsOf(pod, &containers[0])
	s.Memory = units.Bytes(limits.Memory().Value())
	s.CPUs = int(limits.Cpu().Value())
	s.Whole = pod.Status.QOSClass == corev1.PodQOSGuaranteed && limits.Cpu().MilliValue() == int64(s.CPUs)*1000
	var err error
	s.HugePages, err = hugePages(limits)
	return &s, errors.Join(err, s.Check())
}

// limitsOf are the limits of a container; the pod's own where it has none.
func limitsOf(pod *corev1.Pod, c *corev1.Container) corev1.ResourceList {
	limits := corev1.ResourceList{}
	if pod.Spec.Resources != nil {
		limits = pod.Spec.Resources.Limits.DeepCopy()
	}
	for name, limit := range c.Resources.Limits {
		limits[name] = limit
	}
	return limits
}

// hugePages are the limits for huge pages, the smallest pages first.
func hugePages(limits corev1.ResourceList) ([]chain.HugePages, error) {
	var all []chain.HugePages
	for name, limit := range limits {
		text, ok := strings.CutPrefix(string(name), corev1.ResourceHugePagesPrefix)
		if !ok || limit.IsZero() {
			continue
		}
		size, err := resource.ParseQuantity(text)
		if err != nil {
			return nil, fmt.Errorf("limit of %s: %w", name, err)
		}
		all = append(all, chain.HugePages{Size: units.Bytes(size.Value()), Limit: units.Bytes(limit.Value())})
	}
	slices.SortFunc(all, func(a, b chain.HugePages) int { return cmp.Compare(a.Size, b.Size) })
	return all, nil
}

// dpdkFiles are the files of the containers of DPDK applications: the program
// dray-eal, and a driver for each version of DPDK that this image was built for.
type dpdkFiles struct{ image, node string }

// Folders of both directories, and where containers see them.
const (
	binFolder = "bin"
	libFolder = "lib"
)

// mounts are read-only, and programs run from there.
func (d dpdkFiles) mounts() []*cdi.Mount {
	options := []string{"bind", "ro", "nosuid", "nodev"}
	return []*cdi.Mount{
		{HostPath: filepath.Join(d.node, binFolder), ContainerPath: eal.ProgramsInside, Options: options},
		{HostPath: filepath.Join(d.node, libFolder), ContainerPath: eal.DriversInside, Options: options},
	}
}

// serve refuses a claim with dpdk ports if this node has no files for them.
func (d dpdkFiles) serve(c *claims.Claim) error {
	if c.DPDK == nil {
		return nil
	}
	if _, err := os.Stat(filepath.Join(d.node, binFolder, eal.Program)); err != nil {
		return fmt.Errorf("this node cannot serve dpdk ports: %w", err)
	}
	return nil
}

// notInPods is why pods have no other devices than those of net_dray, by transport.
var notInPods = map[string]string{
	vhostuser.Name: "each of its links would have a switch of its own",
	dpdkring.Name:  "each pod could change all DPDK memory of the other",
	afxdp.Name:     "pods have no CAP_SYS_ADMIN on the host",
}

// describe tells the planner what DPDK applications have on this node.
func (d dpdkFiles) describe(inv *inventory.Inventory) {
	driver := d.install()
	inv.DPDK = []inventory.Item{driver}
	// net_memif is in the image of the application.
	inv.Transport(memif.Name).Item = inventory.Item{Name: memif.Name, Status: driver.Status, Reason: driver.Reason, Fix: driver.Fix}
	for name, why := range notInPods {
		t := inv.Transport(name)
		t.Reason, t.Fix = "nodes of a cluster do not make it: "+why, "use transport: shm"
		if name == vhostuser.Name {
			t.Fix = "use transport: " + ovsdpdk.Name
		}
	}
}

// install copies the files from the image to the node, and reports the driver
// to the planner.
func (d dpdkFiles) install() inventory.Item {
	item := inventory.Item{Name: dpdk.NetDray, Status: inventory.Missing, Fix: "build the image of dray-node where DPDK is installed: make pmd images"}
	drivers, err := filepath.Glob(filepath.Join(d.image, libFolder, "*", dpdk.DriverFile))
	if err == nil && len(drivers) == 0 {
		err = errors.New("the image of dray-node has none")
	}
	for _, file := range append(drivers, filepath.Join(d.image, binFolder, eal.Program)) {
		err = errors.Join(err, d.copy(file))
	}
	if err == nil {
		err = d.executable()
	}
	if err != nil {
		item.Reason = err.Error()
		return item
	}
	item.Status, item.Fix = inventory.OK, ""
	item.Version = versions(drivers)
	return item
}

// executable refuses a directory from which no program runs.
func (d dpdkFiles) executable() error {
	noexec, err := host.NoExec(d.node)
	if err == nil && noexec {
		err = fmt.Errorf("the file system of %s is mounted noexec: give dray-node another directory by --programs", d.node)
	}
	return err
}

// versions are those of drivers.
func versions(drivers []string) string {
	var all []string
	for _, d := range drivers {
		all = append(all, dpdk.Release(filepath.Base(filepath.Dir(d))))
	}
	return strings.Join(all, ", ")
}

// copy copies a file of the image.
func (d dpdkFiles) copy(file string) error {
	name, err := filepath.Rel(d.image, file)
	if err != nil {
		return err
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	return replace(filepath.Join(d.node, name), content, 0o755)
}

// writeProfile writes the seccomp profile for huge pages to the directory in
// which the kubelet looks for profiles.
func writeProfile(dir string) error {
	profile, err := runtime.HugePagesSeccomp()
	if err != nil {
		return err
	}
	return replace(filepath.Join(dir, eal.SeccompProfile), profile, 0o644)
}

// replace replaces a file of the node at once: a container may read it now, and
// one that has opened the old file keeps it.
func replace(file string, content []byte, mode os.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return host.ReplaceFile(file, content, mode)
}
