// SPDX-License-Identifier: Apache-2.0

package prepare

import (
	"fmt"
	"slices"
	"strings"
)

const cpufreqDir = "sys/devices/system/cpu/cpufreq"

// planGovernor chooses the governor of every frequency policy.
func (s *System) planGovernor(report *Report, governor string) error {
	if governor == "" {
		report.skip("governor", "not asked for")
		return nil
	}
	policies := s.numbers(cpufreqDir, "policy")
	if len(policies) == 0 {
		report.skip("governor", "no cpufreq on this machine: nothing to do")
		return nil
	}
	before := len(report.Changes)
	for _, policy := range policies {
		key := Key{Kind: kindGovernor, Number: policy}
		now, err := s.read(key.file())
		if err != nil {
			return err
		}
		offered, err := s.read(fmt.Sprintf("%s/policy%d/scaling_available_governors", cpufreqDir, policy))
		if err != nil {
			return err
		}
		if !slices.Contains(strings.Fields(offered), governor) {
			report.refuse(key, now, governor, "its driver does not offer it; choose from: %s", offered)
			continue
		}
		report.want(key, now, governor)
	}
	if len(report.Changes) == before {
		report.skip("governor", "it is %s already", governor)
	}
	return nil
}
