// SPDX-License-Identifier: Apache-2.0

// dray-eal starts the DPDK application of a pod on the pod's dpdk ports. Each
// node gives it to the containers that have such ports.
package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"

	"github.com/drayage/dray/internal/spec/dpdk"
	"github.com/drayage/dray/internal/spec/release"
	"github.com/drayage/dray/kube/internal/eal"
)

const usage = `usage: dray-eal [--only PORT] COMMAND [ARGUMENT...]

It replaces itself by COMMAND. An argument that is exactly $(DRAY_EAL) becomes EAL's arguments for the dpdk ports of
this container. The environment variable DRAY_EAL has the same arguments, separated by blanks, for scripts.

If a port's transport is ovs-dpdk, dray-eal stays, passes on signals, and shows the port's vhost-user socket to the
switch of the node, which connects to it, also when either has been started again.

If a port's transport is memif, dray-eal stays likewise, and joins the port to the application of the other pod. Of
two functions, the one whose name comes first listens, and the other connects. COMMAND starts once the other end
listens. It is stopped, and dray-eal ends with status 1, when the connection is lost, for DPDK's driver never connects
again: let the pod's restartPolicy restart the container.

--only PORT gives COMMAND the device of this port alone. It is for programs that measure, and is not stopped when a
connection is lost.

DRAY_LIB names a folder with another driver librte_net_dray.so than the node's.

Exit status: of COMMAND; or 1 if it cannot be started, 2 for wrong usage.
`

func main() {
	switch {
	case len(os.Args) < 2:
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	case os.Args[1] == "--help":
		fmt.Print(usage)
		return
	case os.Args[1] == "--version":
		fmt.Println(release.Text("dray-eal"))
		return
	}
	only, argv := "", os.Args[1:]
	if argv[0] == "--only" {
		if len(argv) < 3 {
			fmt.Fprint(os.Stderr, usage)
			os.Exit(2)
		}
		only, argv = argv[1], argv[2:]
	}
	code, err := run(argv, only)
	if err != nil {
		fmt.Fprintln(os.Stderr, "dray-eal:", err)
	}
	os.Exit(code)
}

// run returns the exit status of a command next to which it stays, or if the command cannot be
// started.
func run(argv []string, only string) (code int, err error) {
	program, err := exec.LookPath(argv[0])
	if err != nil {
		return 1, err
	}
	arguments, stay, err := eal.Arguments(program, only)
	if err != nil {
		return 1, err
	}
	if warning := eal.Warning(); warning != "" {
		fmt.Fprintln(os.Stderr, "dray-eal: warning:", warning)
	}
	set := map[string]string{dpdk.Variable: strings.Join(arguments, " ")}
	if os.Getenv(dpdk.RuntimeVariable) == "" {
		// EAL keeps nothing there, but complains if it cannot. A container can write to
		// it even if its root is read-only.
		set[dpdk.RuntimeVariable] = "/dev/shm"
	}
	for name, value := range set {
		if err := os.Setenv(name, value); err != nil {
			return 1, err
		}
	}
	argv = dpdk.Expand(argv, arguments)
	if stay {
		return eal.Attend(context.Background(), program, argv, only, signals())
	}
	return 1, fmt.Errorf("%s: %w", program, syscall.Exec(program, argv, os.Environ()))
}

// signals are those that are for the application.
func signals() <-chan os.Signal {
	all := make(chan os.Signal, 16)
	signal.Notify(all, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2)
	return all
}
