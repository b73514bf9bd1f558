// SPDX-License-Identifier: Apache-2.0

package record

// HasJitter reports whether a trial's Delivery.Jitter is a measurement. Drayage's
// generator derives it from the one-way times, which it has not if the two ends
// have two clocks.
func (t *Trial) HasJitter() bool {
	return t.Delivery != nil && (t.Quantity == QDelivery || t.OneWay != nil)
}
