// SPDX-License-Identifier: Apache-2.0

package instrument

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"sync"
	"time"

	"github.com/drayage/dray/internal/inventory"
)

// tool is a program that may or may not be installed.
type tool struct {
	name    string
	pkg     string   // Debian package
	ask     []string // arguments that make it print its version
	version *regexp.Regexp
}

// probeTimeout bounds how long a program may take to print its version.
const probeTimeout = 5 * time.Second

// versions remembers what each program file printed, since asking costs a
// process for every trial.
var versions sync.Map // path → version

// find returns the program's file and version.
func (t tool) find(ctx context.Context) (path, version string, err error) {
	path, err = exec.LookPath(t.name)
	if err != nil {
		return "", "", fmt.Errorf("the program %s is missing: apt-get install %s", t.name, t.pkg)
	}
	if v, ok := versions.Load(path); ok {
		return path, v.(string), nil
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, t.ask...)
	cmd.WaitDelay = time.Second
	// Some print their version and exit with 1, so that only the text tells.
	out, runErr := cmd.CombinedOutput()
	m := t.version.FindSubmatch(out)
	if m == nil {
		return "", "", fmt.Errorf("%s does not tell its version (%v, %q): reinstall the package %s", path, runErr, lastWords(out), t.pkg)
	}
	versions.Store(path, string(m[1]))
	return path, string(m[1]), nil
}

// probe is the tool's line in `dray doctor`.
func (t tool) probe(ctx context.Context) inventory.Item {
	_, version, err := t.find(ctx)
	if err != nil {
		return inventory.Item{Name: t.name, Status: inventory.Missing, Reason: err.Error(), Fix: "apt-get install " + t.pkg}
	}
	return inventory.Item{Name: t.name, Status: inventory.OK, Version: version}
}
