// SPDX-License-Identifier: Apache-2.0

package all

import (
	"testing"

	"github.com/drayage/dray/internal/host/step"
	"github.com/drayage/dray/internal/spec/chain"
)

func TestEveryRuntimeOfAChainIsThere(t *testing.T) {
	built := map[chain.RuntimeName]bool{}
	kinds := map[step.Kind]bool{}
	for _, rt := range All() {
		if built[rt.Name()] {
			t.Errorf("two runtimes are named %s", rt.Name())
		}
		built[rt.Name()] = true
		for kind := range rt.Removers() {
			if kinds[kind] {
				t.Errorf("two runtimes remove %s", kind)
			}
			kinds[kind] = true
		}
	}
	for _, name := range []chain.RuntimeName{chain.RuntimeRunc, chain.RuntimeProcess, chain.RuntimeDocker, chain.RuntimeVM, chain.RuntimeExternal} {
		if !built[name] {
			t.Errorf("no runtime %s", name)
		}
	}
	if All()[0].Name() != chain.RuntimeRunc {
		t.Error("the default runtime is not the first")
	}
}
