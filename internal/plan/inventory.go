// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strings"

	"github.com/drayage/dray/internal/spec/inventory"
)

func findInterface(inv *inventory.Inventory, name string) *inventory.Interface {
	for i := range inv.Interfaces {
		if inv.Interfaces[i].Name == name {
			return &inv.Interfaces[i]
		}
	}
	return nil
}

func interfaceNames(inv *inventory.Inventory) string {
	var names []string
	for _, i := range inv.Interfaces {
		names = append(names, i.Name)
	}
	return strings.Join(names, ", ")
}

// usable drops items that this host lacks.
func usable(items []inventory.Item) []inventory.Item {
	var out []inventory.Item
	for _, item := range items {
		if item.Usable() {
			out = append(out, item)
		}
	}
	return out
}

func joinNames(items []inventory.Item) string {
	var names []string
	for _, item := range items {
		names = append(names, item.Name)
	}
	return strings.Join(names, ", ")
}
