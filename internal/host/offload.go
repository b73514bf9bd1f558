// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"
	"slices"
	"strings"
)

// offloadGroups are the offloads that affect a measurement, under the names that
// records use, each with its kernel features.
var offloadGroups = []struct {
	name     string
	features []string // a trailing * matches any ending
}{
	{"tso", []string{"tx-tcp-segmentation", "tx-tcp6-segmentation"}},
	{"gso", []string{"tx-generic-segmentation"}},
	{"gro", []string{"rx-gro"}},
	{"lro", []string{"rx-lro"}},
	{"tx-checksum", []string{"tx-checksum-*"}},
	{"rx-checksum", []string{"rx-checksum"}},
	{"scatter-gather", []string{"tx-scatter-gather"}},
	{"tx-udp-segmentation", []string{"tx-udp-segmentation"}},
}

// offloadAliases are the short names that ethtool -K takes.
var offloadAliases = map[string]string{"tx": "tx-checksum", "rx": "rx-checksum", "sg": "scatter-gather"}

// Offloads lists an interface's offloads for a record:
// "tso on, gso on, gro off, lro off, tx-checksum on, …".
func (n Netns) Offloads(link string) (string, error) {
	var text string
	err := n.withEthtool(link, func(e *ethtool) error {
		states, err := e.features()
		if err == nil {
			text = describeOffloads(states)
		}
		return err
	})
	return text, err
}

func describeOffloads(states map[string]featureState) string {
	var parts []string
	for _, group := range offloadGroups {
		parts = append(parts, group.name+" "+onOff(anyActive(states, group.features)))
	}
	return strings.Join(parts, ", ")
}

// SetOffload switches an offload and reads it back. feature is a name that
// Offloads prints, an alias of ethtool -K (tx, rx, sg), or a kernel feature.
func (n Netns) SetOffload(link, feature string, on bool) error {
	patterns := offloadPatterns(feature)
	return n.withEthtool(link, func(e *ethtool) error {
		states, err := e.features()
		if err != nil {
			return err
		}
		change := map[string]bool{}
		for name, state := range states {
			if matches(name, patterns) && state.Available {
				change[name] = on
			}
		}
		if len(change) > 0 {
			if err := e.change(change); err != nil {
				return err
			}
		}
		if states, err = e.features(); err != nil {
			return err
		}
		if anyActive(states, patterns) != on {
			return fmt.Errorf("offload %s is fixed and cannot be switched %s", feature, onOff(on))
		}
		return nil
	})
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

func offloadPatterns(feature string) []string {
	if full, ok := offloadAliases[feature]; ok {
		feature = full
	}
	for _, group := range offloadGroups {
		if group.name == feature {
			return group.features
		}
	}
	return []string{feature}
}

func anyActive(states map[string]featureState, patterns []string) bool {
	for name, state := range states {
		if state.Active && matches(name, patterns) {
			return true
		}
	}
	return false
}

func matches(name string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		before, after, wild := strings.Cut(pattern, "*")
		if !wild {
			return name == pattern
		}
		return strings.HasPrefix(name, before) && strings.HasSuffix(name, after)
	})
}

// withEthtool calls f inside the namespace.
func (n Netns) withEthtool(link string, f func(*ethtool) error) error {
	err := n.Do(func() error {
		e, err := openEthtool(link)
		if err != nil {
			return err
		}
		defer e.close()
		return f(e)
	})
	if err != nil {
		return fmt.Errorf("offloads of %s in %s: %w", link, n, err)
	}
	return nil
}
