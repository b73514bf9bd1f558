// SPDX-License-Identifier: Apache-2.0

// dray-eal starts the DPDK application of a pod on the pod's dpdk ports. Each
// node gives it to the containers that have such ports.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"github.com/drayage/dray/internal/spec/dpdk"
	"github.com/drayage/dray/internal/spec/release"
	"github.com/drayage/dray/kube/internal/eal"
)

const usage = `usage: dray-eal COMMAND [ARGUMENT...]

It replaces itself by COMMAND. An argument that is exactly $(DRAY_EAL) becomes EAL's arguments for the dpdk ports of
this container. The environment variable DRAY_EAL has the same arguments, separated by blanks, for scripts.

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
	fmt.Fprintln(os.Stderr, "dray-eal:", run(os.Args[1:]))
	os.Exit(1)
}

// run returns only if the command cannot be started.
func run(argv []string) error {
	program, err := exec.LookPath(argv[0])
	if err != nil {
		return err
	}
	arguments, err := eal.Arguments(program)
	if err != nil {
		return err
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
			return err
		}
	}
	if err := syscall.Exec(program, dpdk.Expand(argv, arguments), os.Environ()); err != nil {
		return fmt.Errorf("%s: %w", program, err)
	}
	return nil
}
