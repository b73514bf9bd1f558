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
	r, err := Parse("x", []byte(good), nil)
	testenv.Must(t, err)
	if r.Title != "A tool" || !slices.Equal(r.Packages, []Part{{"tool", "what it does: this"}, {"tool-2", "more"}}) ||
		!slices.Equal(r.Programs, []Part{{"draygen", "the generator"}}) || r.Takes != 20*time.Second ||
		!slices.Equal(r.Try, []string{"tool", "--version"}) || r.Shows != "tool 1" {
		t.Errorf("%+v", r)
	}
}

const pin = "1fab3df863f66fdb6c3b34f1b39e745dbcb12d5e"

const goodSource = good + "script: start what it does\nprogram: libdray_x.so what\nsource: DRAY_X https://x.example/x " + pin + " a/b\nbuild-package: cc compiler\n"

var goodFiles = map[string][]byte{"build.sh": []byte("exit 0\n"), "start": []byte("#!/bin/sh\n"), "a/b.c": nil}

func TestParseSource(t *testing.T) {
	r, err := Parse("x", []byte(goodSource+"suite: bookworm\n"), goodFiles)
	testenv.Must(t, err)
	if *r.Source != (Source{"DRAY_X", "https://x.example/x", pin, "a/b"}) || !slices.Equal(r.BuildPackages, []Part{{"cc", "compiler"}}) ||
		!slices.Equal(r.Scripts, []Part{{"start", "what it does"}}) || r.Suite != "bookworm" || r.Programs[1].Name != "libdray_x.so" {
		t.Errorf("%+v", r)
	}
}

func TestBadRecipes(t *testing.T) {
	for text, want := range map[string]string{
		"title":                                           `x:1: "title" is not of the form`,
		"title: ":                                         "is not of the form",
		good + "colour: red":                              `x:9: unknown key "colour"`,
		good + "title: B":                                 `a second "title"`,
		good + "package: tool again":                      `a second "package tool"`,
		good + "package: other":                           "add its purpose after the name",
		good + "package: --hook what":                     "is not the name",
		good + "package: a,b what":                        "is not the name",
		good + "package: a_b what":                        "is not the name",
		good + "program: ../sh what":                      "is not the name",
		good + "suite: a b":                               "is not the name of a Debian release",
		"# nothing\n":                                     `has no line "title"`,
		strings.Replace(good, "20s", "soon", 1):           "x:6: ",
		strings.Replace(good, "20s", "-1s", 1):            "cannot take",
		strings.Replace(good, "shows: tool 1", "", 1):     `has no line "shows"`,
		good + "build-package: cc compiler":               `no line "source"`,
		good + "build-package: cc":                        "add its purpose",
		good + "script: absent what":                      "needs the file absent",
		good + "script: nothing.sh what":                  "needs the file nothing.sh in a folder x/",
		good + "script: a/b.c what":                       "is not the name",
		good + "source: DRAY_X https://x.example " + pin:  "x:9: ",
		strings.Replace(goodSource, "DRAY_X", "PATH", 1):  `"PATH" is not the name of a variable`,
		strings.Replace(goodSource, "https:", "ext:", 1):  "is not the address of a repository",
		strings.Replace(goodSource, pin, "main", 1):       `"main" is not a commit`,
		strings.Replace(goodSource, " a/b", " ../b", 1):   "is not a path below",
		strings.Replace(goodSource, "a/b", "a/b more", 1): "is not VARIABLE REPOSITORY COMMIT FILE",
		goodSource + "source: again":                      `a second "source"`,
		goodSource + "build-package: cc again":            `a second "build-package cc"`,
	} {
		if _, err := Parse("x", []byte(text), goodFiles); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	if _, err := Parse("x", []byte(goodSource), nil); err == nil || !strings.Contains(err.Error(), "needs the file build.sh in a folder x/") {
		t.Errorf("without a folder: %v", err)
	}
}

// Every recipe of the repository parses, and published work has its recipes.
func TestRecipes(t *testing.T) {
	for _, name := range images.Names() {
		if r, err := Find(name); err != nil || r.Name != name {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{"debian", "dpdk", "ovs", "pktgen", "iperf", "ran", "vnf"} {
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
