// SPDX-License-Identifier: Apache-2.0

package node

import "fmt"

// Devices lets one host program open all dpdk ports of a function instead of the
// function: with these EAL arguments, under these names by port.
func (l *Live) Devices(function string) (eal []string, names map[string]string, err error) {
	f, err := l.function(function)
	if err != nil {
		return nil, nil, err
	}
	app, err := l.spec(*f).Application(false)
	if err != nil {
		return nil, nil, fmt.Errorf("function %s: %w", function, err)
	}
	if eal, err = app.EAL(); err != nil {
		return nil, nil, fmt.Errorf("function %s: %w", function, err)
	}
	names = map[string]string{}
	for _, d := range app.Devices() {
		names[d.Port] = d.Name
	}
	return eal, names, nil
}
