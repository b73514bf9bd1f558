//go:build deps

// SPDX-License-Identifier: Apache-2.0

package internal

import (
	_ "github.com/HdrHistogram/hdrhistogram-go"
	_ "github.com/containerd/go-runc"
	_ "github.com/google/go-cmp/cmp"
	_ "github.com/moby/profiles/seccomp"
	_ "github.com/opencontainers/runtime-spec/specs-go"
	_ "github.com/safchain/ethtool"
	_ "github.com/santhosh-tekuri/jsonschema/v6"
	_ "github.com/spf13/cobra"
	_ "go.yaml.in/yaml/v3"
	_ "golang.org/x/term"
	_ "gonum.org/v1/gonum/stat"
)
