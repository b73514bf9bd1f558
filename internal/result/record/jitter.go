// SPDX-License-Identifier: Apache-2.0

package record

// HasJitter reports whether a trial's Delivery.Jitter was measured. Drayage's generator
// derives it from one-way times, so it has none if the ends have different clocks.
func (t *Trial) HasJitter() bool {
	return t.Delivery != nil && (t.Quantity == QDelivery || t.OneWay != nil)
}
