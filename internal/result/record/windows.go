// SPDX-License-Identifier: Apache-2.0

package record

// Windows are the receive windows of messages that are due in slots, by kind: "c_plane" and
// "u_plane" of a fronthaul (O-RAN.WG4.CUS), "dl_tti" and "tx_data" of FAPI (SCF 222).
type Windows map[string]Window

// Window counts the received messages of a kind by their receive window. The four are all
// that arrived.
type Window struct {
	Early  uint64 `json:"early"`
	OnTime uint64 `json:"on_time"`
	Late   uint64 `json:"late"`
	// SentLate were sent after their transmission window: no link could have carried
	// them in time.
	SentLate uint64 `json:"sent_late"`
	// AfterOpening is when those on time or late arrived, since the window opened, ns.
	AfterOpening Histogram `json:"after_opening"`
}

// Sum is of all kinds, without the histograms.
func (w Windows) Sum() Window {
	var sum Window
	for _, k := range w {
		sum = sum.Plus(k)
	}
	return sum
}

// Plus adds up the counts, without the histograms.
func (w Window) Plus(o Window) Window {
	return Window{Early: w.Early + o.Early, OnTime: w.OnTime + o.OnTime, Late: w.Late + o.Late, SentLate: w.SentLate + o.SentLate}
}

// Received is all that arrived.
func (w Window) Received() uint64 { return w.Early + w.OnTime + w.Late + w.SentLate }
