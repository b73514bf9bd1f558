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
)

func (a *app) metricsCommand() *cobra.Command {
	var listen string
	cmd := &cobra.Command{
		Use:   "metrics",
		Short: "Export the figures of native links to Prometheus",
		Long: "Print the figures of all native links on this host in Prometheus text format, for the textfile\n" +
			"collector of node_exporter. With --listen, serve them at /metrics until Ctrl-C, to anyone who can reach\n" +
			"the address.",
		Example: "  dray metrics\n  dray metrics --listen 127.0.0.1:9464",
		Args:    args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			w, err := a.watcher(nil)
			if err != nil {
				return err
			}
			if listen == "" {
				return a.printMetrics(cmd.Context(), w)
			}
			return a.serveMetrics(cmd.Context(), w, listen)
		},
	}
	cmd.Flags().StringVar(&listen, "listen", "", "serve at this address, host:port, instead of printing once")
	return cmd
}

// registry holds the metrics of the latest sample.
func registry(latest func() []live.Link) *prometheus.Registry {
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(live.NewCollector(latest))
	return r
}

// printMetrics samples as long as a verdict needs.
func (a *app) printMetrics(ctx context.Context, w *live.Watcher) error {
	links, err := glance(ctx, w)
	if err != nil {
		return err
	}
	families, err := registry(func() []live.Link { return links }).Gather()
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

func (a *app) serveMetrics(ctx context.Context, w *live.Watcher, address string) error {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("%w (--listen takes host:port, such as 127.0.0.1:9464)", err)
	}
	var latest atomic.Pointer[[]live.Link]
	latest.Store(&[]live.Link{})
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(registry(func() []live.Link { return *latest.Load() }), promhttp.HandlerOpts{}))
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
