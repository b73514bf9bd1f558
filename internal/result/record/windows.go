// SPDX-License-Identifier: Apache-2.0

package record

// Windows are the receive windows of a fronthaul's messages (O-RAN.WG4.CUS), by plane.
type Windows struct {
	CPlane Window `json:"c_plane"`
	UPlane Window `json:"u_plane"`
}

// Window counts a plane's received messages by their receive window. The four are all
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

// Sum is of both planes, without the histograms.
func (w Windows) Sum() Window {
	c, u := w.CPlane, w.UPlane
	return Window{Early: c.Early + u.Early, OnTime: c.OnTime + u.OnTime, Late: c.Late + u.Late, SentLate: c.SentLate + u.SentLate}
}

// Received is all that arrived.
func (w Window) Received() uint64 { return w.Early + w.OnTime + w.Late + w.SentLate }
