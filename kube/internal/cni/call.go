// SPDX-License-Identifier: Apache-2.0

// Package cni is the CNI plugin dray-cni: on nodes whose container runtime accepts no
// NRI plugin, it tells dray-node of each pod's network namespace. It makes nothing by
// itself, and a pod without interfaces of ours never needs dray-node.
package cni

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Attachment is a pod's network namespace.
type Attachment struct {
	Pod       types.UID `json:"pod"`
	Container string    `json:"container"` // ID of the sandbox
	Netns     string    `json:"netns"`     // file
	Network   string    `json:"network"`   // name of the network's configuration
}

// Interface is a port that a pod has from Drayage.
type Interface struct {
	Name string `json:"name"`
	MAC  string `json:"mac"`
	MTU  int    `json:"mtu"`          // bytes
	IP   string `json:"ip,omitempty"` // with prefix length
	// Device is set for a port of a DPDK application that has a socket, and no interface.
	Device *Device `json:"device,omitempty"`
}

// Valid are the sandboxes of a network that still exist.
type Valid struct {
	Network    string   `json:"network"`
	Containers []string `json:"containers"`
}

// What dray-cni asks dray-node.
const (
	PathAdd = "/add" // an Attachment; the answer is a list of Interface
	PathGet = "/get" // an Attachment; the same answer, and nothing changes
	PathDel = "/del" // an Attachment
	PathGC  = "/gc"  // Valid
)

// Socket is where dray-node answers; dir is the directory of both programs.
func Socket(dir string) string { return filepath.Join(dir, "node.sock") }

// Record is the file of a pod whose claims have interfaces, or devices with sockets. It exists from before the
// pod's sandbox until after it.
func Record(dir string, pod types.UID) (string, error) {
	if !uidPattern.MatchString(string(pod)) {
		return "", fmt.Errorf("pod %q: not a UID", pod)
	}
	return filepath.Join(dir, string(pod)+".json"), nil
}

var uidPattern = regexp.MustCompile(`^[0-9A-Za-z-]{1,64}$`)

// ErrAbsent says that no dray-node answers.
var ErrAbsent = errors.New("dray-node of this node does not answer")

const (
	// callTimeout is longer than dray-node waits for dray-net.
	callTimeout = 20 * time.Second
	// MaxMessage bounds requests and answers, in bytes.
	MaxMessage = 1 << 20
)

// call asks dray-node. What it answers goes to answer, unless that is nil.
func call(dir, path string, question, answer any) error {
	body, err := json.Marshal(question)
	if err != nil {
		return err
	}
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", Socket(dir))
	}
	client := http.Client{Timeout: callTimeout, Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}
	response, err := client.Post("http://dray-node"+path, "application/json", bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrAbsent, err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, MaxMessage))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrAbsent, err)
	}
	if response.StatusCode != http.StatusOK {
		return errors.New("dray-node: " + strings.TrimSpace(string(text)))
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(text, answer)
}
