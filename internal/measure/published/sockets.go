// SPDX-License-Identifier: Apache-2.0

package published

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/measure/instrument"
	"github.com/drayage/dray/internal/measure/verify"
	"github.com/drayage/dray/internal/node"
	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/spec/experiment"
	"github.com/drayage/dray/internal/spec/inventory"
)

// Ports of a link within the sender's function, which is the kernel face of its DPDK
// application.
const socketPort, facePort = "k0", "k1"

// socketsText are two functions and their link. With a kernel face, the sender's port
// is of a DPDK application.
//
//	            a                         b
//	socket ---- p0 -------- link -------- p1 ---- socket
//
//	socket -- kernel face -- testpmd -- p0 --- link --- p1 ---- socket
func socketsText(_ *inventory.Inventory, c experiment.Cell) string {
	const address = "10.99.0.1/24"
	far := fmt.Sprintf("  - {name: %s, runtime: %s%s, ports: [{name: %s, ip: 10.99.0.2/24}]}\n", server, c.Runtime, imageField(c), sink)
	link := fmt.Sprintf("links:\n  - {name: link, ends: [%s.%s, %s.%s], transport: %s}\n", client, clientPort, server, sink, c.Transport)
	near := func(command, ports string) string {
		return fmt.Sprintf("functions:\n  - {name: %s, runtime: %s%s%s, ports: [%s]}\n", client, c.Runtime, imageField(c), command, ports) + far + link
	}
	switch c.KernelFace {
	case experiment.KernelFaceTap:
		return near("", fmt.Sprintf("{name: %s, face: dpdk, ip: %s}", clientPort, address))
	case experiment.KernelFaceVeth:
		argv := slices.Concat(instrument.LineBuffered, []string{instrument.Testpmd, "$(DRAY_EAL)", "--"}, instrument.TestpmdOptions)
		ports := fmt.Sprintf("{name: %s, face: dpdk}, {name: %s, face: dpdk}, {name: %s, ip: %s}", clientPort, facePort, socketPort, address)
		return near(", command: ["+strings.Join(argv, ", ")+"]", ports) +
			fmt.Sprintf("  - {name: kernel, ends: [%s.%s, %s.%s], transport: veth}\n", client, socketPort, client, facePort)
	}
	return near("", fmt.Sprintf("{name: %s, ip: %s}", clientPort, address))
}

// sockets sends the smallest frames from a socket, first as many as pass and then one
// at a time, each of which returns.
func sockets(ctx context.Context, r *Runner, live *node.Live, c experiment.Cell) (record.Trial, error) {
	from, to, stop, err := socketEnds(ctx, live, c)
	if err != nil {
		return record.Trial{}, err
	}
	defer stop()
	generator, p := instrument.Draygen{Quantity: record.QFrames}, instrument.Params{Duration: r.Run.Trial, Frame: echoFrame}
	t, err := generator.Run(ctx, from, to, p)
	t.Link = live.State.Plan.Links[0].Name
	t.Runtimes = map[string]string{from.Name: string(c.Runtime), to.Name: string(c.Runtime)}
	if err != nil {
		return t, err
	}
	back, err := generator.Echo(ctx, from, to, p)
	t.Raw += back.Raw
	t.Marks = distinct(slices.Concat(t.Marks, back.Marks))
	if err != nil {
		return t, err
	}
	v := map[string]float64{"packet_rate": float64(t.Delivery.PacketRate) / 1e3, "sent_rate": float64(t.Delivery.SentRate) / 1e3}
	t.Experiment = &record.Experiment{Values: v}
	if err := distribution(v, back.Latency.Histogram, back.Latency.Lost); err != nil {
		return t, err
	}
	v["round_trip"] = v["latency_mean"] * perMicro / perMilli
	return t, nil
}

// socketEnds are the interfaces of both sockets, once packets pass between them. stop
// ends what was started for that.
func socketEnds(ctx context.Context, live *node.Live, c experiment.Cell) (from, to instrument.Endpoint, stop func(), err error) {
	if from, to, err = ends(live); err != nil || c.KernelFace == "" {
		return from, to, func() {}, err
	}
	links := live.State.Plan.Links
	if c.KernelFace == experiment.KernelFaceTap {
		from, stop, err = instrument.TapFace(ctx, from, links[0].Ends[0].IP)
		return from, to, stop, err
	}
	in := verify.Input{Plan: live.State.Plan, Sandboxes: live.State.Sandboxes, Device: live.Device}
	if from, err = in.Endpoint(links[1].Ends[0]); err != nil {
		return from, to, nil, err
	}
	if stop, err = supervise(ctx, live); err != nil {
		return from, to, nil, err
	}
	if err = awaitForwarding(ctx, live); err != nil {
		stop()
	}
	return from, to, stop, err
}

// awaitForwarding waits until the sender's testpmd forwards.
func awaitForwarding(ctx context.Context, live *node.Live) error {
	for began := time.Now(); !instrument.Forwards(live.LogTail(client, 1<<20)); {
		if time.Since(began) > startTime {
			return fmt.Errorf("%s did not start; its last output: %s", instrument.Testpmd, live.LogTail(client, 2))
		}
		if err := host.Sleep(ctx, outageTick); err != nil {
			return err
		}
	}
	return nil
}

func socketsTime(c experiment.Cell, trial time.Duration) time.Duration {
	d := overhead + 2*trial
	if c.KernelFace != "" {
		d += pollsExtra
	}
	return d
}
