// SPDX-License-Identifier: Apache-2.0

package image

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/drayage/dray/internal/host"
)

// sources describes where this host gets Debian packages.
type sources struct {
	suite   string   // such as bookworm
	lines   []string // of a sources.list
	options []string // of apt: its proxies
}

// hostSources asks apt, so that an image has the host's own release and mirror.
func hostSources(ctx context.Context) (*sources, error) {
	s := &sources{suite: codename("/etc/os-release")}
	if s.suite == "" {
		return nil, noDebian("/etc/os-release names no Debian release")
	}
	ask := func(program string, args ...string) (string, error) {
		return host.Helper{Program: program, Args: args, Package: "apt"}.Output(ctx)
	}
	out, err := ask("apt-get", "indextargets", "--format", "$(CODENAME) $(COMPONENT) $(REPO_URI)", "Created-By: Packages")
	if err != nil {
		return nil, err
	}
	s.lines = sourceLines(s.suite, out)
	if len(s.lines) == 0 {
		return nil, noDebian("apt has no source for " + s.suite + " main")
	}
	out, err = ask("apt-config", "dump", "--format", `%F "%v"%n`, "Acquire::http::Proxy", "Acquire::https::Proxy")
	if err != nil {
		return nil, err
	}
	for _, line := range strings.Split(out, "\n") {
		if line != "" && !strings.HasSuffix(line, `""`) {
			s.options = append(s.options, line)
		}
	}
	return s, nil
}

func noDebian(why string) error {
	return &host.Unsupported{
		What: "an image of Debian's packages", Why: why,
		Fix: "give apt a source for Debian main in /etc/apt/sources.list.d, then apt-get update",
	}
}

// sourceLines are the release's sources, with its updates and security updates,
// from the targets that apt lists.
func sourceLines(suite, targets string) []string {
	suites := []string{suite, suite + "-updates", suite + "-security"}
	var lines []string
	for _, target := range strings.Split(targets, "\n") {
		f := strings.Fields(target)
		if len(f) != 3 || f[1] != "main" || !slices.Contains(suites, f[0]) {
			continue
		}
		option := ""
		if strings.Contains(f[2], "snapshot.debian.org") { // whose Release file has expired
			option = "[check-valid-until=no] "
		}
		if line := fmt.Sprintf("deb %s%s %s main", option, f[2], f[0]); !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	slices.Sort(lines)
	return lines
}

// codename is the release named by an os-release file; empty: not Debian.
func codename(file string) string {
	f, err := os.Open(file)
	if err != nil {
		return ""
	}
	defer f.Close()
	values := map[string]string{}
	for scan := bufio.NewScanner(f); scan.Scan(); {
		if key, value, ok := strings.Cut(scan.Text(), "="); ok {
			values[key] = strings.Trim(value, `"'`)
		}
	}
	if values["ID"] != "debian" {
		return ""
	}
	return values["VERSION_CODENAME"]
}
