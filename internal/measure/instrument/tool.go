// SPDX-License-Identifier: Apache-2.0

package instrument

import (
	"cmp"
	"context"
	"errors"
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

// find returns the program's file and version. A program that is absent is
// *host.Unsupported; any other error says what happened to it.
func (t tool) find(ctx context.Context) (path, version string, err error) {
	path, err = t.look()
	if err != nil {
		return "", "", err
	}
	if v, ok := versions.Load(path); ok {
		return path, v.(string), nil
	}
	// Some print their version and exit with 1, so only the text counts.
	answer, err := host.Helper{Program: path, Args: t.ask, Limit: hangTimeout}.Run(ctx)
	m := t.version.FindStringSubmatch(answer.Text())
	if m == nil {
		return "", "", cmp.Or(err, fmt.Errorf("%s does not report its version: %q", path, lastWords([]byte(answer.Text()))))
	}
	versions.Store(path, m[1])
	return path, m[1], nil
}

func (t tool) look() (path string, err error) {
	look := host.LookProgram
	if t.own {
		look = host.OwnProgram
	}
	path, err = look(t.name)
	if errors.Is(err, exec.ErrNotFound) {
		err = &host.Unsupported{What: t.name, Why: "the program " + t.name + " is missing", Fix: t.fix(), Cause: err}
	}
	return path, err
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
	item := host.ProbeItem(t.name, err)
	item.Version = version
	return item
}
