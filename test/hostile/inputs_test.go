// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/drayage/dray/test/testenv"
)

// attackFiles mutates chains, records, calibrations and all else that is parsed in Go.
func attackFiles(s *session) { s.fuzz("go", regexp.MustCompile(`execs: (\d+)`)) }

// attackPackets mutates packets for each function of dray-vnf and for draygen, and
// control messages and lanes for libdray.
func attackPackets(s *session) { s.fuzz("c", regexp.MustCompile(`number_of_executed_units: (\d+)`)) }

// fuzz runs the repository's fuzzers, which have short forms in make test.
func (s *session) fuzz(language string, attempts *regexp.Regexp) {
	s.Helper()
	list := s.script("list", language)
	targets := strings.Count(list, "\n")
	each := max(1, int(s.time.Seconds())/targets)
	out := s.script(strconv.Itoa(each)+"s", language)
	for _, m := range attempts.FindAllStringSubmatch(out, -1) {
		n, err := strconv.ParseUint(m[1], 10, 64)
		testenv.Must(s, err)
		s.result.Attempts += n
	}
	s.count("targets", uint64(targets))
}

func (s *session) script(args ...string) string {
	s.Helper()
	cmd := exec.Command("scripts/fuzz.sh", args...)
	cmd.Dir = filepath.Join("..", "..")
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.finding("scripts/fuzz.sh %s: %v: %s", strings.Join(args, " "), err, tail(string(out)))
	}
	return string(out)
}
