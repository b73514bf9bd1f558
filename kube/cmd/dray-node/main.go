// SPDX-License-Identifier: Apache-2.0

// dray-node gives the pods of one node their ports: it is the node's DRA
// driver, and reports what it measures on their links.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client/config"

	"github.com/drayage/dray/internal/node"
	"github.com/drayage/dray/internal/node/doctor"
	"github.com/drayage/dray/internal/spec/manifest"
	"github.com/drayage/dray/internal/spec/release"
	"github.com/drayage/dray/kube/api/v1alpha1"
	"github.com/drayage/dray/kube/internal/layout"
	"github.com/drayage/dray/kube/internal/nodeagent"
	"github.com/drayage/dray/kube/internal/sandbox"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == manifest.CaptureVerb {
		if err := runCapture(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, "dray-node:", err)
			os.Exit(1)
		}
		return
	}
	var o nodeagent.Options
	flag.StringVar(&o.Node, "node", os.Getenv("NODE_NAME"), "`name` of this node; default $NODE_NAME")
	flag.StringVar(&o.Namespace, "namespace", os.Getenv("POD_NAMESPACE"), "`namespace` in which the node publishes its inventory; default $POD_NAMESPACE")
	flag.StringVar(&o.StateDir, "state", layout.State, "`directory` of claims and of the broker; it must outlive this program")
	flag.StringVar(&o.CDIDir, "cdi", "/var/run/cdi", "`directory` in which the container runtime looks for CDI specifications")
	flag.StringVar(&o.PluginDir, "plugin", "/var/lib/kubelet/plugins/"+v1alpha1.Driver, "`directory` of the driver's socket")
	flag.StringVar(&o.Registry, "registry", "/var/lib/kubelet/plugins_registry", "`directory` in which the kubelet looks for plugins")
	flag.StringVar(&o.Programs, "programs", layout.Programs, "`directory` of the node for what containers with DPDK applications get; programs must run from there")
	flag.StringVar(&o.Image, "from", "/dpdk", "`directory` of this image from which that is copied")
	flag.StringVar(&o.Seccomp, "seccomp", "/var/lib/kubelet/seccomp", "`directory` in which the kubelet looks for seccomp profiles")
	flag.StringVar(&o.NRI, "nri", sandbox.Socket, "`socket` at which the container runtime waits for NRI plugins")
	flag.StringVar(&o.CNI, "cni", "", "`directory` in which the container runtime looks for CNI plugins: install dray-cni there, and have it report pods instead of NRI")
	flag.StringVar(&o.CNIProgram, "cni-program", "/cni/dray-cni", "`file` of this image with that plugin")
	flag.StringVar(&o.Calibration, "calibration", doctor.CalibrationFile(node.DefaultStateDir), "`file` that dray calibrate writes on this node; it may be missing")
	metrics := flag.String("metrics", fmt.Sprintf(":%d", manifest.NodePort), "`address` of /metrics, /links and /healthz; empty: none")
	version := flag.Bool("version", false, "print the version and exit")
	flag.Parse()
	if *version {
		fmt.Println(release.Text("dray-node"))
		return
	}
	o.PodName, o.PodUID = os.Getenv("POD_NAME"), types.UID(os.Getenv("POD_UID"))
	o.Log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	slog.SetDefault(o.Log) // for what has no logger of its own
	if err := run(o, *metrics); err != nil {
		fmt.Fprintln(os.Stderr, "dray-node:", err)
		os.Exit(1)
	}
}

func run(o nodeagent.Options, metrics string) error {
	switch {
	case flag.NArg() > 0:
		return fmt.Errorf("unexpected argument %q; see --help", flag.Arg(0))
	case o.Node == "" || o.Namespace == "":
		return errors.New("which node, and which namespace? set --node and --namespace, or NODE_NAME and POD_NAMESPACE")
	}
	c, err := config.GetConfig() // --kubeconfig, $KUBECONFIG, or the cluster that this runs in
	if err != nil {
		return err
	}
	if o.Client, err = kubernetes.NewForConfig(c); err != nil {
		return err
	}
	if o.Dynamic, err = dynamic.NewForConfig(c); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	agent, err := nodeagent.New(o)
	if err != nil {
		return err
	}
	if metrics != "" {
		go serve(ctx, stop, metrics, agent)
	}
	o.Log.Info("starting", "release", release.Text("dray-node"), "node", o.Node)
	return agent.Run(ctx)
}

// serve serves metrics; if it cannot, the program ends.
func serve(ctx context.Context, stop func(), address string, agent *nodeagent.Agent) {
	mux := http.NewServeMux()
	mux.Handle("/metrics", agent.Metrics.Handler())
	mux.HandleFunc("GET /links", agent.ServeLinks)
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	server := &http.Server{Addr: address, Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		slog.Error("metrics", "error", err)
		stop()
	}
}
