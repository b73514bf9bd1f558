// SPDX-License-Identifier: Apache-2.0

package prepare

import (
	"fmt"
	"slices"
	"strings"

	"github.com/drayage/dray/internal/spec/cpulist"
)

// boot is what the command line lacks; nil if it has everything.
func (s *System) boot(r Request) *Boot {
	line, err := s.read("proc/cmdline")
	if err != nil {
		return nil
	}
	present := strings.Fields(line)
	arguments := strings.Join(slices.DeleteFunc(s.bootArguments(r), func(group string) bool {
		return !slices.ContainsFunc(strings.Fields(group), func(word string) bool { return !slices.Contains(present, word) })
	}), " ")
	if arguments == "" {
		return nil
	}
	return &Boot{Arguments: arguments, Fix: s.bootFix(arguments)}
}

// bootArguments are groups of words that belong together.
func (s *System) bootArguments(r Request) []string {
	var all []string
	if len(r.Isolate) > 0 {
		free := cpulist.Format(r.Isolate)
		all = append(all, "isolcpus=managed_irq,domain,"+free, "nohz_full="+free, "rcu_nocbs="+free)
		if online, err := s.cpus("online"); err == nil {
			all = append(all, "irqaffinity="+cpulist.Format(cpulist.Without(online, r.Isolate)))
		}
	}
	for _, pages := range r.HugePages {
		if size, ok := map[uint64]string{page2M: "2M", page1G: "1G"}[pages.Size]; ok && pages.Count > 0 {
			all = append(all, fmt.Sprintf("hugepagesz=%s hugepages=%d", size, pages.Count))
		}
	}
	if len(r.Bind) > 0 && len(s.names("sys/class/iommu")) == 0 {
		if info, err := s.read("proc/cpuinfo"); err == nil && strings.Contains(info, "GenuineIntel") {
			all = append(all, "intel_iommu=on")
		}
		all = append(all, "iommu=pt")
	}
	return all
}

func (s *System) bootFix(arguments string) string {
	switch {
	case s.exists("usr/sbin/grubby"):
		return fmt.Sprintf("run `grubby --update-kernel=ALL --args=%q`, then reboot", arguments)
	case s.exists("etc/default/grub"):
		return "add them to GRUB_CMDLINE_LINUX in /etc/default/grub, run update-grub, then reboot"
	}
	return "add them to the kernel's command line, in the boot loader or in the hypervisor's settings of this machine, then reboot"
}
