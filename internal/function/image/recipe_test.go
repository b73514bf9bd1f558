// SPDX-License-Identifier: Apache-2.0

package image

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drayage/dray/images"
	"github.com/drayage/dray/test/testenv"
)

const good = `# a comment
title: A tool
package: tool   what it does: this
package: tool-2 more
program: draygen the generator
takes: 20s
try: tool --version
shows: tool 1
`

func TestParse(t *testing.T) {
	r, err := Parse("x", []byte(good))
	testenv.Must(t, err)
	if r.Title != "A tool" || !slices.Equal(r.Packages, []Part{{"tool", "what it does: this"}, {"tool-2", "more"}}) ||
		!slices.Equal(r.Programs, []Part{{"draygen", "the generator"}}) || r.Takes != 20*time.Second ||
		!slices.Equal(r.Try, []string{"tool", "--version"}) || r.Shows != "tool 1" {
		t.Errorf("%+v", r)
	}
}

func TestBadRecipes(t *testing.T) {
	for text, want := range map[string]string{
		"title":                                       `x:1: "title" is not of the form`,
		"title: ":                                     "is not of the form",
		good + "colour: red":                          `x:9: unknown key "colour"`,
		good + "title: B":                             `a second "title"`,
		good + "package: tool again":                  `a second "package tool"`,
		good + "package: other":                       "add its purpose after the name",
		good + "package: --hook what":                 "is not the name",
		good + "package: a,b what":                    "is not the name",
		good + "program: ../sh what":                  "is not the name",
		"# nothing\n":                                 `has no line "title"`,
		strings.Replace(good, "20s", "soon", 1):       "x:6: ",
		strings.Replace(good, "20s", "-1s", 1):        "cannot take",
		strings.Replace(good, "shows: tool 1", "", 1): `has no line "shows"`,
	} {
		if _, err := Parse("x", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// Every recipe of the repository parses, and published work has its recipes.
func TestRecipes(t *testing.T) {
	for _, name := range images.Names() {
		if r, err := Find(name); err != nil || r.Name != name {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{"debian", "dpdk", "ovs", "pktgen", "iperf", "vnf"} {
		if !slices.Contains(images.Names(), name) {
			t.Errorf("there is no image %s", name)
		}
	}
	if _, err := Find("../recipe"); err == nil || !strings.Contains(err.Error(), "choose from debian, dpdk") {
		t.Errorf("%v", err)
	}
}

func TestSourceLines(t *testing.T) {
	const targets = `bookworm main http://a.example/debian/
bookworm main http://a.example/debian/
bookworm contrib http://a.example/debian/
bookworm-updates main http://a.example/debian/
bookworm-security main http://snapshot.debian.org/archive/s/
bookworm-backports main http://a.example/debian/
other main http://b.example/
`
	want := []string{
		"deb [check-valid-until=no] http://snapshot.debian.org/archive/s/ bookworm-security main",
		"deb http://a.example/debian/ bookworm main",
		"deb http://a.example/debian/ bookworm-updates main",
	}
	if got := sourceLines("bookworm", targets); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if got := sourceLines("trixie", targets); got != nil {
		t.Errorf("%q", got)
	}
}
