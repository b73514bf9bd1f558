// SPDX-License-Identifier: Apache-2.0

// dray-cni is a CNI plugin: it tells dray-node of the network namespaces of
// pods, on nodes where the container runtime does not do that itself (NRI).
package main

import (
	"os"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/version"

	"github.com/drayage/dray/internal/spec/release"
	"github.com/drayage/dray/kube/internal/cni"
	"github.com/drayage/dray/kube/internal/layout"
)

func main() {
	plugin := cni.Plugin{Dir: layout.CNI(layout.State), Devices: cni.DeviceFiles, Out: os.Stdout}
	skel.PluginMainFuncs(plugin.Funcs(), version.All, release.Text("dray-cni"))
}
