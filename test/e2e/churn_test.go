// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"strings"
	"testing"
)

// TestLinksThatComeAndGo: on a host where another program makes and removes interfaces all the
// time, the kernel interrupts most lists of them. No command fails, or misses one of its own.
// DRAY_TEST_CHURN is how often each command runs, verify a tenth of that.
func TestLinksThatComeAndGo(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	chain := b.file(pair{Name: "churn", Command: `[sleep, "1000"]`, Transport: "veth", Requires: "{latency: {max: 1s, percentile: 50}}"}.yaml())
	times := os.Getenv("DRAY_TEST_CHURN")
	if times == "" {
		times = "3"
	}
	r := b.inOwn("--net", `
times=`+times+` chain=`+chain+`
ip link set lo up
i=0; while [ $i -lt 100 ]; do ip link add "stays$i" type bridge; i=$((i + 1)); done
batch=$(mktemp)
i=0; while [ $i -lt 50 ]; do printf 'link add comes%d type veth peer goes%d\nlink del comes%d\n' $i $i $i; i=$((i + 1)); done >"$batch"
while :; do ip -batch "$batch"; done &
churn=$!
trap 'kill $churn; rm "$batch"' EXIT
try() {
	said=$("$dray" "$@" 2>&1) || { status=$?; case $1:$status in verify:4) ;; *) echo "dray $*: status $status: $said"; exit 1 ;; esac; }
}
i=0; while [ $i -lt $times ]; do
	try plan "$chain"; try doctor; try up "$chain"; try status churn
	[ $((i % 10)) -ne 0 ] || try verify churn --rounds 1 --duration 200ms --out "$(dirname "$chain")/out$i"
	try down churn
	i=$((i + 1))
done
kill -0 $churn`)
	if r.Code != 0 || strings.TrimSpace(r.Stdout) != "" {
		t.Errorf("%s", r)
	}
}
