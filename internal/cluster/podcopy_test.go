// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// aPod is a pod as the API server returns it, with the defaults that admission adds.
const aPod = `{"metadata":{"name":"du-0","labels":{"app":"du"},"annotations":{"a":"b"}},"spec":{
  "nodeName":"n1","nodeSelector":{"pool":"ran"},"affinity":{},"tolerations":[{"key":"x"}],"schedulerName":"default-scheduler","priority":0,
  "preemptionPolicy":"PreemptLowerPriority","serviceAccount":"default","serviceAccountName":"default","enableServiceLinks":true,
  "hostUsers":false,"hostNetwork":false,"restartPolicy":"Always","dnsPolicy":"ClusterFirst","terminationGracePeriodSeconds":30,"securityContext":{"runAsUser":1000},
  "resourceClaims":[{"name":"ports","resourceClaimTemplateName":"f1-du"}],
  "volumes":[{"name":"settings","configMap":{"name":"s"}},{"name":"keys","secret":{"secretName":"k"}},{"name":"scratch","emptyDir":{}},
    {"name":"kube-api-access-x7","projected":{"sources":[{"serviceAccountToken":{"path":"token"}}]}}],
  "initContainers":[{"name":"first","image":"init:1"}],
  "containers":[{"name":"main","image":"du:1","command":["du","--fast"],"env":[{"name":"A","value":"b"}],"ports":[{"containerPort":80}],
    "volumeMounts":[{"name":"settings","mountPath":"/etc/du"},{"name":"kube-api-access-x7","mountPath":"/var/run/secrets"}],"resources":{"claims":[{"name":"ports"}]}}]}}`

func podFrom(t *testing.T, text string) *livePod {
	t.Helper()
	var p livePod
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		t.Fatal(err)
	}
	return &p
}

// TestACopyOfAPod runs the same programs on the same node, bounded, without labels, and without a token.
func TestACopyOfAPod(t *testing.T) {
	spec, err := podFrom(t, aPod).copied("f1-du", "f1-dray-verify-du")
	if err != nil {
		t.Fatal(err)
	}
	s := StandIn{Namespace: "ran", Chain: "f1-dray-verify", Of: "f1", uid: "u1", Life: 90 * time.Minute}
	data, err := json.Marshal(s.program("f1-dray-verify-du", "du", "n1", spec))
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	for _, want := range []string{
		`"image":"du:1"`, `"command":["du","--fast"]`, `"env":[{"name":"A","value":"b"}]`, `"image":"init:1"`, `"mountPath":"/etc/du"`, `"configMap":{"name":"s"}`, `"secretName":"k"`, `"emptyDir":{}`,
		`"securityContext":{"runAsUser":1000}`, `"hostUsers":false`, `"restartPolicy":"Always"`, `"resourceClaimTemplateName":"f1-dray-verify-du"`, `"claims":[{"name":"ports"}]`,
		`"activeDeadlineSeconds":5400`, `"values":["n1"]`, `"automountServiceAccountToken":false`, `"labels":{"drayage.io/stands-in-for":"f1"}`, `"uid":"u1"`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the copy lacks %s: %s", want, text)
		}
	}
	for _, other := range []string{"kube-api-access", "serviceAccountName", `"nodeSelector"`, `"app"`, `"key":"x"`, "draygen", "nodeName"} {
		if strings.Contains(text, other) {
			t.Errorf("the copy has %s: %s", other, text)
		}
	}
}

// TestPodsWithoutACopy: what two pods cannot both have, and what would let one act as the other, is named.
func TestPodsWithoutACopy(t *testing.T) {
	for want, change := range map[string][2]string{
		"its volume scratch is a hostPath":                            {`"emptyDir":{}`, `"hostPath":{"path":"/x"}`},
		"its volume scratch is a persistentVolumeClaim":               {`"emptyDir":{}`, `"persistentVolumeClaim":{"claimName":"x"}`},
		"it has hostNetwork":                                          {`"hostNetwork":false`, `"hostNetwork":true`},
		"it has readinessGates":                                       {`"hostNetwork":false`, `"readinessGates":[{}]`},
		"it has a token of the service account registrar":             {`"serviceAccountName":"default"`, `"serviceAccountName":"registrar"`},
		"it has a token of the service account default":               {`"name":"kube-api-access-x7","projected"`, `"name":"own","projected"`},
		"its container main has the port 8080 of its node":            {`"containerPort":80`, `"containerPort":80,"hostPort":8080`},
		"its claim gpu is for another device":                         {`"resourceClaims":[`, `"resourceClaims":[{"name":"gpu","resourceClaimTemplateName":"gpu"},`},
		"it has no claim by the template f1-du":                       {`{"name":"ports","resourceClaimTemplateName":"f1-du"}`, ``},
		"it has other networks, by its annotation k8s.v1.cni.cncf.io": {`"a":"b"`, `"k8s.v1.cni.cncf.io/networks":"x"`},
	} {
		text := strings.Replace(aPod, change[0], change[1], 1)
		if text == aPod {
			t.Fatalf("the pod lacks %s", change[0])
		}
		if spec, err := podFrom(t, text).copied("f1-du", "x"); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s: %v", err, want, spec)
		}
	}
}
