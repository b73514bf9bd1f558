// SPDX-License-Identifier: Apache-2.0

// Command dray-guest is the init process of Drayage's virtual machines. On the host
// it represents a program in one of them, and it keeps their logs. dray starts it;
// users never need it.
package main

import (
	"fmt"
	"os"

	"github.com/drayage/dray/internal/function/guest"
	"github.com/drayage/dray/internal/function/guest/contained"
	"github.com/drayage/dray/internal/function/guest/inside"
	"github.com/drayage/dray/internal/node/guestports"
	"github.com/drayage/dray/internal/spec/release"
)

func main() {
	if os.Getpid() == 1 && len(os.Args) == 1 {
		inside.Main()
	}
	if len(os.Args) == 3 && os.Args[1] == "run" {
		os.Exit(guest.ClientMain(os.Args[2], guestports.Relay))
	}
	if len(os.Args) == 2 && os.Args[1] == "ports" {
		os.Exit(guestports.InsideMain())
	}
	if len(os.Args) == 3 && os.Args[1] == "contain" {
		os.Exit(contained.Main(os.Args[2]))
	}
	if len(os.Args) == 3 && os.Args[1] == "logs" {
		os.Exit(guest.LogsMain(os.Args[2]))
	}
	if len(os.Args) == 2 && os.Args[1] == "--version" {
		fmt.Println(release.Text("dray-guest"))
		return
	}
	fmt.Fprintln(os.Stderr, "dray starts dray-guest: as the first process of a guest, to run a program or a container in it, to bring its ports to it, and to keep its logs")
	os.Exit(2)
}
