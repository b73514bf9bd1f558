// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/drayage/dray/internal/function/runtime"
)

// commandUser is the host uid of the function's command: the image's user, as the
// daemon maps it. The pause container must be running.
func (r *Runtime) commandUser(ctx context.Context, s runtime.Spec) (int, error) {
	user, err := r.Client.Output(ctx, "image", "inspect", "--format", "{{.Config.User}}", "--", s.Function.Image)
	if err != nil {
		return 0, err
	}
	uid, err := imageUID(user)
	if err != nil {
		return 0, fmt.Errorf("function %s: image %s: %w", s.Function.Name, s.Function.Image, err)
	}
	pid, err := r.Client.PID(ctx, pauseName(s))
	if err != nil {
		return 0, fmt.Errorf("function %s: %w", s.Function.Name, err)
	}
	mapping, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/uid_map")
	if err != nil {
		return 0, fmt.Errorf("function %s: %w", s.Function.Name, err)
	}
	return hostUID(mapping, uid)
}

// imageUID is the uid of an image's USER, which may be followed by a group. A
// name could be resolved only inside the image.
func imageUID(user string) (int, error) {
	name, _, _ := strings.Cut(user, ":")
	if name == "" || name == "root" {
		return 0, nil
	}
	uid, err := strconv.ParseUint(name, 10, 31)
	if err != nil {
		return 0, fmt.Errorf("its user %q does not show who may open its native ports: build it with a numeric USER", user)
	}
	return int(uid), nil
}

// hostUID maps a container uid through its uid_map (user_namespaces(7)).
func hostUID(mapping []byte, uid int) (int, error) {
	for _, line := range bytes.Split(mapping, []byte("\n")) {
		var inside, outside, size int
		if n, _ := fmt.Sscan(string(line), &inside, &outside, &size); n == 3 && uid >= inside && uid-inside < size {
			return outside + uid - inside, nil
		}
	}
	return 0, fmt.Errorf("uid %d of the container is mapped to no host user", uid)
}
