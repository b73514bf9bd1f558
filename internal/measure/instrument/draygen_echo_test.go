// SPDX-License-Identifier: Apache-2.0

package instrument

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/test/testenv"
)

func TestEchoSession(t *testing.T) {
	end := func(name, device string) Endpoint {
		return Endpoint{Name: name, Port: "p", Device: device, EAL: []string{"--no-huge"}, IP: netip.MustParseAddr("10.0.0.1"), MAC: "02:00:00:00:00:01", MTU: 1500}
	}
	from, to := end("a.p", "net_virtio_user0"), end("b.p", "net_virtio_user1")
	o, err := Draygen{record.QFrames}.frames(from, to, Params{Frame: 60})
	testenv.Must(t, err)
	s, err := genCommands([]string{"draygen-dpdk"}, []string{"draygen-dpdk"}, from, to, o, time.Second)
	testenv.Must(t, err)
	testenv.Must(t, s.echo())
	client, server := strings.Join(s.client, " "), strings.Join(s.server, " ")
	if !strings.HasPrefix(client, "draygen-dpdk ping --port dpdk:net_virtio_user0") || !strings.HasSuffix(client, "--duration 1000ms --closed") || !strings.Contains(client, "--size 60") {
		t.Errorf("%s", client)
	}
	if !strings.HasPrefix(server, "draygen-dpdk sink --port dpdk:net_virtio_user1") || !strings.HasSuffix(server, "--once --reflect") {
		t.Errorf("%s", server)
	}
	s.opened = genOpened
	if err := s.echo(); err == nil {
		t.Error("an echo whose requesting end must start first")
	}
}

func TestParseEcho(t *testing.T) {
	good := string(testdata(t, "draygen-ping.json"))
	r, err := parseEcho([]byte(good), offer{frame: 60})
	testenv.Must(t, err)
	l := r.Latency
	if l.Sent != 50 || l.Lost != 0 || l.Histogram.Total() != 50 || l.MinRTT != 130 || l.Halved || l.MessageBytes != 18 || r.took != 19088 {
		t.Errorf("%+v, %v", l, r.took)
	}
	lost := strings.Replace(good, `"sent":50`, `"sent":60`, 1)
	if r, err = parseEcho([]byte(lost), offer{frame: 60}); err != nil || r.Lost != 10 {
		t.Errorf("%+v, %v", r.Latency, err)
	}
	for what, change := range map[string][2]string{
		"another role":     {`"role":"ping"`, `"role":"sink"`},
		"nothing sent":     {`"sent":50`, `"sent":0`},
		"more than sent":   {`"sent":50`, `"sent":49`},
		"other count":      {`"received":50`, `"received":49`},
		"fewer times":      {`"round_trip":{"n":50`, `"round_trip":{"n":49`},
		"no times":         {`"round_trip":{"n":50`, `"trip":{"n":50`},
		"none of the time": {`"min":130`, `"min":0`},
		"took for ever":    {`"elapsed_ns":19088`, `"elapsed_ns":-1`},
	} {
		bad := strings.Replace(good, change[0], change[1], 1)
		if r, err := parseEcho([]byte(bad), offer{frame: 60}); bad == good || err == nil {
			t.Errorf("%s gives %+v", what, r.Latency)
		}
	}
}
