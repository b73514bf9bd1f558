// SPDX-License-Identifier: Apache-2.0

package instrument

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"sync"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/spec/inventory"
)

// tool is a program that may not be installed.
type tool struct {
	name    string
	pkg     string   // Debian package
	own     bool     // built with this project
	ask     []string // arguments that print its version
	version *regexp.Regexp
}

// versions caches each program file's version, since asking costs a process in
// every trial.
var versions sync.Map // path → version

// find returns the program's file and version.
func (t tool) find(ctx context.Context) (path, version string, err error) {
	if t.own {
		path, err = host.OwnProgram(t.name)
	} else {
		path, err = exec.LookPath(t.name)
	}
	if err != nil {
		return "", "", fmt.Errorf("the program %s is missing: %s", t.name, t.fix())
	}
	if v, ok := versions.Load(path); ok {
		return path, v.(string), nil
	}
	ctx, cancel := context.WithTimeout(ctx, hangTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, t.ask...)
	cmd.WaitDelay = hangTimeout
	// Some print their version and exit with 1, so only the text counts.
	out, runErr := cmd.CombinedOutput()
	m := t.version.FindSubmatch(out)
	if m == nil {
		return "", "", fmt.Errorf("%s does not report its version (%v, %q): %s", path, runErr, lastWords(out), t.fix())
	}
	versions.Store(path, string(m[1]))
	return path, string(m[1]), nil
}

// fix is how a user installs the program.
func (t tool) fix() string {
	if t.name == draygenDPDK.name {
		return "apt-get install libdpdk-dev, then make build, which puts it next to dray"
	}
	if t.own {
		return "make build, which puts it next to dray, or put it into the PATH"
	}
	return "apt-get install " + t.pkg
}

// probe is the tool's line in `dray doctor`.
func (t tool) probe(ctx context.Context) inventory.Item {
	_, version, err := t.find(ctx)
	if err != nil {
		return inventory.Item{Name: t.name, Status: inventory.Missing, Reason: err.Error(), Fix: t.fix()}
	}
	return inventory.Item{Name: t.name, Status: inventory.OK, Version: version}
}
