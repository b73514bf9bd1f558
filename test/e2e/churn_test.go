// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/drayage/dray/test/testenv"
)

// TestLinksThatComeAndGo: on a host where another program makes and removes interfaces all the
// time, the kernel interrupts most lists of them. No command fails, or misses one of its own.
// DRAY_TEST_CHURN is how often each command runs, verify a tenth of that.
func TestLinksThatComeAndGo(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	chain := b.file(pair{Name: "churn", Command: `[sleep, "1000"]`, Transport: "veth", Requires: "{latency: 1s, percentile: 50}"}.yaml())
	times := 3
	if text := os.Getenv("DRAY_TEST_CHURN"); text != "" {
		var err error
		times, err = strconv.Atoi(text)
		testenv.Must(t, err)
	}
	r := b.inOwn(longest+time.Duration(times)*time.Minute, "--net", `
times=`+strconv.Itoa(times)+` chain=`+chain+`
ip link set lo up
i=0; while [ $i -lt 100 ]; do ip link add "stays$i" type bridge; i=$((i + 1)); done
batch=$(mktemp) errors=$(mktemp)
i=0; while [ $i -lt 50 ]; do printf 'link add comes%d type veth peer goes%d\nlink del comes%d\n' $i $i $i; i=$((i + 1)); done >"$batch"
while :; do ip -force -batch "$batch" 2>"$errors" || :; done &
churn=$!
trap 'kill $churn; rm "$batch" "$errors"' EXIT
# The kernel numbers all interfaces that come in a namespace.
last() { ip link add last type bridge; ip -o link show last | cut -d: -f1; ip link del last; }
try() {
	said=$("$dray" "$@" 2>&1) || { status=$?; case $1:$status in verify:[45]) ;; *) echo "dray $*: status $status: $said"; exit 1 ;; esac; }
}
i=0; while [ $i -lt $times ]; do
	[ $i -ne $((times / 2)) ] || middle=$(last)
	try plan "$chain"; try doctor; try up "$chain"; try status churn
	[ $((i % 10)) -ne 0 ] || try verify churn --rounds 1 --duration 1s --out "$(dirname "$chain")/out$i"
	try down churn
	i=$((i + 1))
done
now=$(last)
[ "$now" -gt $((middle + 10)) ] || { echo "no interfaces came after the middle of the test: $middle, $now, $(cat "$errors")"; exit 1; }`)
	if r.Code != 0 || strings.TrimSpace(r.Stdout) != "" {
		t.Errorf("%s", r)
	}
}
