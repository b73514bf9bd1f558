// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"context"
	"os"
	"path/filepath"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/host/step"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/sockpath"
)

// PortsInside is the directory of native port sockets in a container: libdray's
// default.
const PortsInside = "/run/dray/ports"

// HasPortSockets reports whether the function opens a port by its socket, or may
// do so: for a dpdk port the link's transport decides.
func (s Spec) HasPortSockets() bool { return len(s.portSockets()) > 0 }

// portSockets are the names of these sockets.
func (s Spec) portSockets() []string {
	var names []string
	for _, p := range s.Function.Ports {
		if p.Face == chain.FaceNative || p.Face == chain.FaceDPDK {
			names = append(names, p.Name)
		}
	}
	return names
}

// PortsDir is the directory of the function's own port sockets, on the host.
func (s Spec) PortsDir() string { return filepath.Join(s.Dir, "ports") }

// PortsPath is the path by which programs on the host reach the sockets in it.
func (s Spec) PortsPath() string { return sockpath.Dir(s.PortsDir(), s.portSockets()...) }

// longestPort is as long as a port's name can be: the function may get more ports later.
const longestPort = "fifteen-letters"

// MakePortsDir makes that directory, whatever the umask.
func (s Spec) MakePortsDir(mode os.FileMode) error {
	dir := s.PortsDir()
	if err := host.MakeDir(dir, mode); err != nil {
		return err
	}
	return host.ShortenDir(dir, longestPort)
}

// PortsSteps makes that directory, for a function with native or dpdk ports, and
// records it in the sandbox. When the step runs, user returns the host uid of the
// function's command. The function may list the directory but not change it; the
// broker makes each socket for that uid alone. show lets the function's programs see a
// file system that a step has mounted on one of its directories; nil: they may not.
func (s Spec) PortsSteps(sandbox *Sandbox, user func(context.Context) (int, error), show func(ctx context.Context, dir string) error) []step.Step {
	if !s.HasPortSockets() {
		return nil
	}
	dir := s.PortsDir()
	steps := []step.Step{{
		Name:  s.Function.Name + ": create the directory of port sockets",
		Makes: []step.Resource{host.DirResource(dir)},
		Do: func(ctx context.Context) error {
			uid, err := user(ctx)
			if err != nil {
				return err
			}
			if err := s.MakePortsDir(0o755); err != nil {
				return err
			}
			sandbox.Ports, sandbox.PortsUser = dir, uid
			return nil
		},
	}}
	if s.HasDpdkPorts() {
		steps = append(steps, s.linksStep(sandbox, user, show))
	}
	return steps
}

// HostMounts is for the PortsSteps of functions that see what is mounted on the host.
func HostMounts(context.Context, string) error { return nil }

// HostEnviron is Environ for a command that sees the host's file system, so its
// port sockets are not in libdray's default directory.
func (s Spec) HostEnviron() []string {
	list := s.Environ()
	if _, own := s.Function.Env["DRAY_PORTS"]; s.HasPortSockets() && !own {
		list = append(list, "DRAY_PORTS="+s.PortsPath())
	}
	return list
}
