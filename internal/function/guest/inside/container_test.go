// SPDX-License-Identifier: Apache-2.0

package inside

import (
	"os"
	"strings"
	"testing"

	"github.com/drayage/dray/internal/function/guest/wire"
)

func TestAwaitReport(t *testing.T) {
	for said, want := range map[string]string{
		ReportStarted: "", "": "without a message", "no such file": "no such file",
		strings.Repeat("x", 2*wire.MaxPayload): "xxx",
	} {
		read, write, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			write.WriteString(said)
			write.Close()
		}()
		err = awaitReport(read)
		read.Close()
		if (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) || len(err.Error()) > wire.MaxPayload) {
			t.Errorf("%.20q: %v", said, err)
		}
	}
}

// TestInContainer: the keeper has neither the program's environment, which the
// function chooses, nor the function's limits.
func TestInContainer(t *testing.T) {
	r := wire.Request{Argv: []string{"true"}, Env: []string{"LD_PRELOAD=x"}, Dir: "/tmp", Group: "function", Memory: 16 << 20, Pids: 4, Container: &wire.Container{Name: "upf", Verb: wire.RunIt}}
	_, keeper, err := inContainer(r)
	if err != nil {
		t.Fatal(err)
	}
	if len(keeper.Env) != 1 || keeper.Env[0] != keeperPath || keeper.Dir != "/" || keeper.Group != "" || keeper.Memory != 0 || keeper.Pids != 0 {
		t.Errorf("%+v", keeper)
	}
	got, err := wire.ParseRequest([]byte(keeper.Argv[2]))
	if err != nil || got.Env[0] != r.Env[0] || *got.Container != *r.Container || got.Memory != r.Memory || got.Pids != r.Pids {
		t.Errorf("%+v, %v", got, err)
	}
}
