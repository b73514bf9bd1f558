// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/common/expfmt"
	"github.com/spf13/cobra"

	"github.com/drayage/dray/internal/measure/live"
	"github.com/drayage/dray/internal/node"
)

func (a *app) metricsCommand() *cobra.Command {
	var listen string
	cmd := &cobra.Command{
		Use:   "metrics",
		Short: "Export the figures of functions and links to Prometheus",
		Long: "Print the figures of all functions and links on this host in Prometheus text format, for the textfile\n" +
			"collector of node_exporter. With --listen, serve them at /metrics until Ctrl-C, to anyone who can reach\n" +
			"the address.",
		Example: "  dray metrics\n  dray metrics --listen 127.0.0.1:9464",
		Args:    args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			n, err := a.node()
			if err != nil {
				return err
			}
			w, err := a.watcher(nil)
			if err != nil {
				return err
			}
			if listen == "" {
				return a.printMetrics(cmd.Context(), n, w)
			}
			return a.serveMetrics(cmd.Context(), n, w, listen)
		},
	}
	cmd.Flags().StringVar(&listen, "listen", "", "serve at this address, host:port, instead of printing once")
	return cmd
}

// registry holds the metrics of the latest sample of the native links, and those of the
// functions and interfaces when it is asked.
func registry(n *node.Node, latest func() []live.Link) *prometheus.Registry {
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(live.NewCollector(latest), live.NewHostCollector(n.Figures))
	return r
}

// printMetrics samples as long as a verdict needs.
func (a *app) printMetrics(ctx context.Context, n *node.Node, w *live.Watcher) error {
	links, err := glance(ctx, w)
	if err != nil {
		return err
	}
	families, err := registry(n, func() []live.Link { return links }).Gather()
	if err != nil {
		return err
	}
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(a.out, f); err != nil {
			return err
		}
	}
	return nil
}

// scrapers is how many requests are served at once: each looks at every function.
const scrapers = 2

func (a *app) serveMetrics(ctx context.Context, n *node.Node, w *live.Watcher, address string) error {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("%w (--listen takes host:port, such as 127.0.0.1:9464)", err)
	}
	var latest atomic.Pointer[[]live.Link]
	latest.Store(&[]live.Link{})
	mux := http.NewServeMux()
	handler := promhttp.HandlerFor(registry(n, func() []live.Link { return *latest.Load() }), promhttp.HandlerOpts{MaxRequestsInFlight: scrapers})
	mux.Handle("/metrics", handler)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second}
	watch, stop := context.WithCancel(ctx)
	defer stop()
	watched := make(chan error, 1)
	go func() {
		watched <- w.Watch(watch, time.Second, -1, func(now []live.Link) error { latest.Store(&now); return nil })
		server.Close()
	}()
	a.progress("Serving http://%s/metrics", l.Addr())
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-watched
}
