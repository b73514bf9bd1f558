// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"golang.org/x/sys/unix"
	"sigs.k8s.io/yaml"

	"github.com/drayage/dray/test/testenv"
)

// prometheus is a Prometheus that runs until the end of the test.
type prometheus struct {
	t       *testing.T
	address string
}

// start runs Prometheus on a scratch folder, with these targets and all rules.
func start(t *testing.T, targets []target) *prometheus {
	t.Helper()
	testenv.Program(t, "prometheus")
	dir := t.TempDir()
	write(t, filepath.Join(dir, "rules.yml"), map[string]any{"groups": atOnce(ruleGroups(t))})
	write(t, filepath.Join(dir, "prometheus.yml"), map[string]any{
		"global":         map[string]any{"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
		"rule_files":     []string{"rules.yml"},
		"scrape_configs": scrapeConfigs(t, targets),
	})
	p := &prometheus{t: t}
	for !p.starts(dir) {
	}
	return p
}

// starts starts Prometheus, and reports false if another program has taken its address meanwhile.
func (p *prometheus) starts(dir string) bool {
	p.t.Helper()
	p.address = freeAddress(p.t)
	var log bytes.Buffer
	cmd := exec.Command("prometheus", "--config.file="+filepath.Join(dir, "prometheus.yml"), "--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--web.listen-address="+p.address, "--log.level=warn")
	cmd.Stdout, cmd.Stderr = &log, &log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait()
	}()
	p.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		<-ended
		if p.t.Failed() {
			p.t.Logf("prometheus: %s", log.String())
		}
	})
	taken := false
	p.eventually("ready", func() error {
		select {
		case <-ended:
			if taken = strings.Contains(log.String(), "address already in use"); taken {
				return nil
			}
			p.t.Fatal("prometheus has ended")
		default:
		}
		_, err := p.get("/-/ready", nil)
		return err
	})
	return !taken
}

// deadAddress is an address of this machine that refuses connections. No other program gets it until the test ends.
func deadAddress(t *testing.T) string {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	testenv.Must(t, err)
	t.Cleanup(func() { _ = unix.Close(fd) })
	testenv.Must(t, unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	own, err := unix.Getsockname(fd)
	testenv.Must(t, err)
	return fmt.Sprintf("127.0.0.1:%d", own.(*unix.SockaddrInet4).Port)
}

// freeAddress is an address of this machine at which nothing listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func write(t *testing.T, path string, content any) {
	t.Helper()
	data, err := yaml.Marshal(content)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// atOnce are the rules without the time for which they must hold. How long that is, is
// tested with promtool, which has a clock of its own.
func atOnce(groups []monitoringv1.RuleGroup) []monitoringv1.RuleGroup {
	for i := range groups {
		for j := range groups[i].Rules {
			groups[i].Rules[j].For = nil
		}
	}
	return groups
}

// scrapeConfigs is what the Prometheus operator makes of the PodMonitors, for pods that are
// known already: their labels are given, as discovery would find them.
func scrapeConfigs(t *testing.T, targets []target) []any {
	t.Helper()
	all := []any{map[string]any{"job_name": "kube-state-metrics", "honor_labels": true, "static_configs": staticConfigs(targets, "kube-state-metrics")}}
	for _, m := range podMonitors(t) {
		for i, e := range m.Spec.PodMetricsEndpoints {
			job := "__meta_kubernetes_pod_label_" + strings.NewReplacer(".", "_", "/", "_").Replace(m.Spec.JobLabel)
			relabel := []any{
				map[string]any{"source_labels": []string{"__meta_kubernetes_namespace"}, "target_label": "namespace"},
				map[string]any{"source_labels": []string{"__meta_kubernetes_pod_name"}, "target_label": "pod"},
				map[string]any{"source_labels": []string{job}, "target_label": "job"},
			}
			for _, r := range e.RelabelConfigs {
				relabel = append(relabel, map[string]any{"source_labels": r.SourceLabels, "target_label": r.TargetLabel, "action": r.Action})
			}
			all = append(all, map[string]any{
				"job_name": fmt.Sprintf("podMonitor/%s/%s/%d", m.Namespace, m.Name, i), "honor_labels": e.HonorLabels,
				"static_configs": staticConfigs(targets, m.Name), "relabel_configs": relabel,
			})
		}
	}
	return all
}

func staticConfigs(targets []target, app string) []any {
	var all []any
	for _, one := range targets {
		if one.app == app {
			all = append(all, map[string]any{"targets": []string{one.address}, "labels": map[string]string{
				"__meta_kubernetes_namespace": "dray-system", "__meta_kubernetes_pod_name": app + "-" + one.node,
				"__meta_kubernetes_pod_node_name": one.node, "__meta_kubernetes_pod_label_app_kubernetes_io_name": app,
			}})
		}
	}
	return all
}

// client does not wait forever for a program that has taken the address of Prometheus.
var client = http.Client{Timeout: 30 * time.Second}

// get asks the HTTP API.
func (p *prometheus) get(path string, query url.Values) ([]byte, error) {
	response, err := client.Get("http://" + p.address + path + "?" + query.Encode())
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", response.Status, body)
	}
	return body, err
}

// sample is one series of an answer, with its value now.
type sample struct {
	Metric map[string]string
	Value  [2]any
}

// query evaluates an expression now.
func (p *prometheus) query(expr string) ([]sample, error) {
	body, err := p.get("/api/v1/query", url.Values{"query": {expr}})
	var answer struct {
		Data struct{ Result []sample }
	}
	if err == nil {
		err = json.Unmarshal(body, &answer)
	}
	return answer.Data.Result, err
}

// alert is a rule that fires.
type alert struct {
	Labels      map[string]string
	Annotations map[string]string
	State       string
}

func (p *prometheus) alerts() ([]alert, error) {
	body, err := p.get("/api/v1/alerts", nil)
	var answer struct {
		Data struct{ Alerts []alert }
	}
	if err == nil {
		err = json.Unmarshal(body, &answer)
	}
	return answer.Data.Alerts, err
}

// patience is how long a test waits for what takes some seconds.
var patience = testenv.Patient(2 * time.Minute)

// eventually fails the test if f goes on failing.
func (p *prometheus) eventually(what string, f func() error) {
	p.t.Helper()
	end := time.Now().Add(patience)
	for {
		err := f()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			p.t.Errorf("%s: %v", what, err)
			return
		}
		time.Sleep(200 * time.Millisecond)
	}
}
