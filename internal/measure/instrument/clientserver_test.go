// SPDX-License-Identifier: Apache-2.0

package instrument

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/drayage/dray/test/testenv"
)

// TestSlowEndsAreWaitedFor: either program may have no CPU for seconds when the other has ended.
func TestSlowEndsAreWaitedFor(t *testing.T) {
	mark := filepath.Join(t.TempDir(), "mark")
	for name, s := range map[string]clientServer{
		"server": {
			server: []string{"/bin/sh", "-c", `trap '' INT; echo '"event":"ready"'; sleep 3; echo result`},
			client: []string{"/bin/true"}, serverEnds: true, linger: time.Millisecond,
		},
		"client": {
			server: []string{"/bin/sh", "-c", `echo '"event":"ready"'; until test -e "$0"; do sleep 0.01; done`, mark},
			client: []string{"/bin/sh", "-c", `touch "$0"; sleep 3; echo result`, mark},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s.ready, s.timeout = genReady, time.Minute
			o, err := s.run(context.Background())
			if out := string(o.server) + string(o.client); err != nil || !strings.Contains(out, "result") {
				t.Errorf("%q, error %v", out, err)
			}
		})
	}
}

// TestAProgramsChildrenEndWithIt, even if it does not wait for them.
func TestAProgramsChildrenEndWithIt(t *testing.T) {
	p, err := launch(Endpoint{}, []string{"/bin/sh", "-c", "sleep 1000 &"})
	testenv.Must(t, err)
	defer p.kill()
	// Its output ends when no process can write any more.
	if !p.within(patience) || p.err != nil {
		t.Errorf("error %v", p.err)
	}
}
