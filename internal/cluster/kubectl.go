// SPDX-License-Identifier: Apache-2.0

// Package cluster sees Drayage on Kubernetes as a user does: through kubectl, with the
// user's own rights.
package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/drayage/dray/internal/spec/manifest"
)

// Kubectl runs kubectl.
type Kubectl struct {
	Flags     []string // of each call, such as --context
	Namespace string   // "": the one that kubectl's configuration names
	System    string   // namespace in which Drayage is installed
}

// answerTime bounds how long a request to the API server takes.
const answerTime = "--request-timeout=20s"

// inPod reports whether kubectl may find its cluster by being in a pod. It does not look there if any flag of a
// connection is set, not even if that is a time limit.
func (k *Kubectl) inPod() bool {
	return os.Getenv("KUBERNETES_SERVICE_HOST") != "" && os.Getenv("KUBECONFIG") == "" && len(k.Flags) == 0
}

// command is a call of kubectl.
func (k *Kubectl) command(ctx context.Context, args ...string) *exec.Cmd {
	if k.inPod() {
		args = slices.DeleteFunc(slices.Clone(args), func(a string) bool { return a == answerTime })
	}
	cmd := exec.CommandContext(ctx, "kubectl", append(slices.Clone(k.Flags), args...)...)
	cmd.Env = append(os.Environ(), "LC_ALL=C") // its errors are read
	cmd.WaitDelay = time.Second
	slog.Debug("run", "argv", cmd.Args)
	return cmd
}

// apart keeps a terminal's Ctrl-C from a call: this program decides what ends.
func apart(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// output is what kubectl prints.
func (k *Kubectl) output(ctx context.Context, args ...string) ([]byte, error) {
	return answer(ctx, k.command(ctx, append([]string{answerTime}, args...)...))
}

// answer runs a call. It returns what the call prints, even if the call fails.
func answer(ctx context.Context, cmd *exec.Cmd) ([]byte, error) {
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return out.Bytes(), failure(ctx, err, errs.String())
	}
	return out.Bytes(), nil
}

// get decodes objects that `kubectl get` prints. what are a resource, and the name of an
// object of it.
func (k *Kubectl) get(ctx context.Context, into any, flags []string, what ...string) error {
	args := append(append([]string{"get", "--output=json"}, flags...), "--")
	text, err := k.output(ctx, append(args, what...)...)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("kubectl get %s: %w", strings.Join(what, " "), err)
	}
	return nil
}

// Context is the context of kubectl's configuration that is in use; "" if that is not known,
// as in a pod.
func (k *Kubectl) Context(ctx context.Context) string {
	for _, f := range k.Flags {
		if name, named := strings.CutPrefix(f, "--context="); named {
			return name
		}
	}
	text, err := k.output(ctx, "config", "current-context")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// in is the flag of a namespace; "" is the one of kubectl's configuration.
func in(namespace string) []string {
	if namespace == "" {
		return nil
	}
	return []string{"--namespace=" + namespace}
}

// Error is a failure of kubectl.
type Error struct {
	Text, Fix string
	missing   bool // the object does not exist
}

func (e *Error) Error() string {
	if e.Fix == "" {
		return e.Text
	}
	return e.Text + "; try: " + e.Fix
}

// isMissing reports whether kubectl has found no such object.
func isMissing(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.missing
}

const notInstalled = "this cluster has no Chains, so Drayage is not installed there"

// causes are kubectl's errors that have a fix, by what they contain.
var causes = []struct{ holds, what, fix string }{
	{`have a resource type "chains"`, notInstalled, "kubectl apply -k kube/deploy/base"},
	{`no matches for kind "Chain" in version "` + manifest.APIVersion, notInstalled, "kubectl apply -k kube/deploy/base"},
	{"must build at directory", "kubectl cannot read the manifests", ""},
	{"violates PodSecurity", "the PodSecurity level of the namespace refuses it", ""},
	{"exceeded quota", "the quota of the namespace leaves no room for it", "kubectl describe resourcequotas"},
	{"failed quota", "the quota of the namespace refuses it", "kubectl describe resourcequotas"},
	{"(Forbidden)", "the cluster refuses it", "kubectl auth can-i --list"},
	{"in configuration", "kubectl is not configured for it", "kubectl config get-contexts"},
	{"no such file", "kubectl is not configured for it", "kubectl config get-contexts"},
	{"onnection", "no cluster answers", "kubectl cluster-info"},
	{"Unable to connect", "no cluster answers", "kubectl cluster-info"},
	{"timeout", "no cluster answers", "kubectl cluster-info"},
	{"Unauthorized", "the cluster does not know this user", "kubectl auth whoami"},
	{"must be logged in", "the cluster does not know this user", "kubectl auth whoami"},
}

// logLine is a line of kubectl's log, which repeats an error.
var logLine = regexp.MustCompile(`(?m)^[IWEF][0-9]{4} .*\n?`)

// failure explains a failed call.
func failure(ctx context.Context, err error, errs string) error {
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return &Error{Text: "there is no kubectl on the PATH, and this command works through it", Fix: "command -v kubectl"}
	case ctx.Err() != nil:
		return ctx.Err()
	}
	text := strings.TrimSpace(logLine.ReplaceAllString(errs, ""))
	if text == "" {
		return fmt.Errorf("kubectl: %w", err)
	}
	if strings.Contains(text, "(NotFound)") {
		return &Error{Text: "kubectl: " + text, missing: true}
	}
	for _, c := range causes {
		if strings.Contains(text, c.holds) {
			return &Error{Text: c.what + ": " + text, Fix: c.fix}
		}
	}
	return fmt.Errorf("kubectl: %s", text)
}
