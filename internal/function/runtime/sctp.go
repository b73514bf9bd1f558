// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"fmt"
	"maps"
	"path/filepath"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/dpdk"
	"github.com/drayage/dray/internal/spec/library"
)

const (
	sctpFile = "libdray_sctp.so"
	// sctpPort is the UDP port of SCTP (RFC 6951).
	sctpPort = "9899"
)

// sctpLib is also in Debian's packages.
var sctpLib = library.Library{What: "the library", File: sctpFile, Build: "make sctp", Installed: []string{"/usr/lib/*-linux-gnu"}}

// sctpLibrary is the library that the function's programs preload; "" if they need none.
func (s Spec) sctpLibrary() (string, error) {
	if s.Function.SCTP == "" || (s.Function.SCTP == chain.SCTPIP && host.ProbeSCTP() == nil) {
		return "", nil
	}
	file, err := sctpLib.Find()
	if err != nil {
		return "", fmt.Errorf("function %s: sctp: %s: %w", s.Function.Name, s.Function.SCTP, err)
	}
	return file, nil
}

// sctpBinds make the library visible in a container.
func (s Spec) sctpBinds() ([]Bind, error) {
	file, err := s.sctpLibrary()
	if file == "" || err != nil {
		return nil, err
	}
	return []Bind{{Source: file, Target: filepath.Join(dpdk.LibInside, sctpFile)}}, nil
}

// withSCTP is the function with the environment that preloads the library. What its env
// preloads itself comes after.
func (s Spec) withSCTP(inside bool) (Spec, error) {
	file, err := s.sctpLibrary()
	if file == "" || err != nil {
		return s, err
	}
	if inside {
		file = filepath.Join(dpdk.LibInside, sctpFile)
	}
	env := map[string]string{}
	if s.Function.SCTP == chain.SCTPUDP {
		env["DRAY_SCTP_UDP"] = sctpPort
	}
	maps.Copy(env, s.Function.Env)
	if own := env["LD_PRELOAD"]; own != "" {
		file += ":" + own
	}
	env["LD_PRELOAD"] = file
	s.Function.Env = env
	return s, nil
}
