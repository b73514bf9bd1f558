// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"
)

// The size of the test: on each node chains of pods in which each pod has a
// link to each other one of its chain.
const (
	chainsPerNode = 5
	podsPerChain  = 5
	scalePods     = 2 * chainsPerNode * podsPerChain
	scaleLinks    = 2 * chainsPerNode * podsPerChain * (podsPerChain - 1) / 2
	measureFor    = time.Minute
)

// TestScale prints how long 50 pods with 100 links take to be Ready, and what
// Drayage's daemons then use. It judges no figure.
func TestScale(t *testing.T) {
	if testing.Short() {
		t.Skip("takes minutes: run make kube-scale")
	}
	c := newCluster(t)
	empty := c.measure()
	rows := []row{{"no pods", empty, nil}}
	for _, traffic := range []bool{false, true} {
		name := "idle"
		if traffic {
			name = "10 packets/s on each link"
		}
		took := c.mesh(traffic)
		if traffic {
			c.until("traffic on every link", c.allFlow)
		}
		rows = append(rows, row{name, c.measure(), took})
		t.Logf("%d pods, %d links on two nodes\n%s", scalePods, scaleLinks, table(rows))
		c.in("delete", "pods", "--all", "--timeout", patience.String())
		t.Logf("%d pods deleted; clean after %v", scalePods, c.until("clean", c.left).Round(time.Second))
	}
}

// mesh makes the chains and the pods at once, and returns after how long each was Ready.
func (c *cluster) mesh(traffic bool) []time.Duration {
	c.t.Helper()
	var all []string
	for n := range 2 * chainsPerNode {
		chain := fmt.Sprintf("c%d", n)
		all = append(all, meshChain(chain))
		for i := range podsPerChain {
			command := sleeps
			if traffic {
				command = meshTraffic(i)
			}
			function := fmt.Sprintf("f%d", i)
			all = append(all, pod{name: chain + "-" + function, template: chain + "-" + function, command: command, node: fmt.Sprintf("n%d", 1+n%2)}.manifest())
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	start := time.Now()
	times := c.watchReady(ctx, scalePods)
	c.apply(strings.Join(all, "\n---\n"))
	var took []time.Duration
	for at := range times {
		took = append(took, at.Sub(start))
	}
	if len(took) < scalePods {
		c.t.Fatalf("only %d of %d pods are ready after %v", len(took), scalePods, patience)
	}
	return took
}

// meshChain is a chain in which each function has a link to each other one.
func meshChain(name string) string {
	var functions, links []string
	ports := make([][]string, podsPerChain)
	for i := range podsPerChain {
		for j := i + 1; j < podsPerChain; j++ {
			ports[i] = append(ports[i], fmt.Sprintf("{name: p%d, face: native}", j))
			ports[j] = append(ports[j], fmt.Sprintf("{name: p%d, face: native}", i))
			links = append(links, fmt.Sprintf("  - {name: l%d%d, ends: [f%d.p%d, f%d.p%d], requires: {latency: 100ms, percentile: 90}}", i, j, i, j, j, i))
		}
	}
	for i := range podsPerChain {
		functions = append(functions, fmt.Sprintf("  - {name: f%d, ports: [%s]}", i, strings.Join(ports[i], ", ")))
	}
	return fmt.Sprintf("apiVersion: drayage.io/v1alpha1\nkind: Chain\nmetadata: {name: %s}\nspec:\n  functions:\n%s\n  links:\n%s\n",
		name, strings.Join(functions, "\n"), strings.Join(links, "\n"))
}

// meshTraffic is what pod i of a chain runs: it sends to those with a higher
// number, and those with a lower one send to it.
func meshTraffic(i int) string {
	var all []string
	for j := range podsPerChain {
		switch {
		case i < j:
			all = append(all, fmt.Sprintf("draygen ping --port dray:p%d --rate 10pps --peer-timeout 600s &", j))
		case i > j:
			all = append(all, fmt.Sprintf("draygen sink --port dray:p%d --reflect &", j))
		}
	}
	return "trap 'kill $(jobs -p)' TERM; " + strings.Join(all, " ") + " wait"
}

// watchReady sends the time at which each of so many pods is Ready, then closes the channel.
func (c *cluster) watchReady(ctx context.Context, pods int) <-chan time.Time {
	c.t.Helper()
	cmd := exec.CommandContext(ctx, c.program, "kubectl", "-n", c.namespace, "get", "pods", "--watch", "-o",
		`jsonpath={.metadata.name} {.status.conditions[?(@.type=="Ready")].status}{"\n"}`)
	cmd.WaitDelay = time.Second
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		c.t.Fatal(err)
	}
	times := make(chan time.Time, pods)
	go func() {
		defer close(times)
		seen := map[string]bool{}
		for lines := bufio.NewScanner(out); len(seen) < pods && lines.Scan(); {
			if name, ready, _ := strings.Cut(lines.Text(), " "); ready == "True" && !seen[name] {
				seen[name] = true
				times <- time.Now()
			}
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
	}()
	return times
}

// allFlow checks that packets have arrived at both ends of every link.
func (c *cluster) allFlow() error {
	flows := 0
	for _, node := range []string{"n1", "n2"} {
		out, err := c.metrics(node)
		if err != nil {
			return err
		}
		for _, line := range strings.Split(out, "\n") {
			if strings.HasPrefix(line, "dray_port_received_packets_total") && strings.Contains(line, `namespace="`+c.namespace+`"`) && !strings.HasSuffix(line, " 0") {
				flows++
			}
		}
	}
	if flows != 2*scaleLinks {
		return fmt.Errorf("%d of %d ports have received packets", flows, 2*scaleLinks)
	}
	return nil
}

// row is one phase of the test.
type row struct {
	name string
	used map[string]usage // by daemon, on both nodes
	took []time.Duration  // of each pod, until it was Ready
}

// table shows what the daemons use; memory and time per link are what is more than without pods.
func table(rows []row) string {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "phase\tReady p50\tp99\tdaemon\tRSS\tper link\tcgroup\tkernel\tCPU\tper link\t")
	for _, r := range rows {
		p50, p99 := "–", "–"
		if len(r.took) > 0 {
			slices.Sort(r.took)
			p50, p99 = percentile(r.took, 50), percentile(r.took, 99)
		}
		for _, d := range daemons {
			u, none := r.used[d], rows[0].used[d]
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%.1f MiB\t%.0f KiB\t%.1f MiB\t%.1f MiB\t%.2f %%\t%.3f %%\t\n", r.name, p50, p99, d,
				u.rss/(1<<20), (u.rss-none.rss)/(1<<10)/scaleLinks, u.cgroup/(1<<20), u.kernel/(1<<20), u.cpu*100, (u.cpu-none.cpu)*100/scaleLinks)
		}
	}
	w.Flush()
	return text.String()
}

func percentile(sorted []time.Duration, p int) string {
	return sorted[(len(sorted)*p+99)/100-1].Round(100 * time.Millisecond).String()
}
