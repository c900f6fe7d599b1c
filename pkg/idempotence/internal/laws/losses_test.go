// SPDX-License-Identifier: Apache-2.0

package laws

import (
	"slices"
	"testing"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

func TestSimilarNeedsOneName(t *testing.T) {
	metric := func(name string, target int64) any {
		return map[string]any{"type": "Resource", "resource": map[string]any{"name": name, "target": map[string]any{"type": "Utilization", "averageUtilization": target}}}
	}
	for _, tt := range []struct {
		a, b any
		want bool
	}{
		{metric("cpu", 75), metric("cpu", 60), true},
		{metric("cpu", 75), metric("memory", 75), false},
		{metric("cpu", 75), metric("memory", 60), false},
	} {
		if got := similar(tt.a, tt.b); got != tt.want {
			t.Errorf("%v and %v: %v", tt.a, tt.b, got)
		}
	}
}

func parsed(t *testing.T, text string) any {
	t.Helper()
	doc, err := tree.Decode([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

func TestLosses(t *testing.T) {
	for name, tc := range map[string]struct {
		from, to string
		want     []string
	}{
		"an element that is changed": {
			`{"tolerations":[{"key":"a","operator":"Exists","tolerationSeconds":5}]}`, `{"tolerations":[{"key":"a","operator":"Exists","tolerationSeconds":9}]}`, nil},
		"an element that is another": {
			`{"tolerations":[{"key":"a","operator":"Exists","effect":"NoSchedule"}]}`, `{"tolerations":[{"key":"b","operator":"Exists","effect":"NoSchedule"}]}`,
			[]string{`tolerations[{"effect":"NoSchedule","key":"a","operator":"Exists"}]`}},
		"two of one key, and one is left": {
			`{"tolerations":[{"key":"a","effect":"NoSchedule"},{"key":"a","effect":"NoExecute"}]}`, `{"tolerations":[{"key":"a","effect":"NoExecute"}]}`,
			[]string{`tolerations[{"effect":"NoSchedule","key":"a"}]`}},
		"two of one key, and a third is left": {
			`{"tolerations":[{"key":"a","effect":"NoSchedule"},{"key":"a","effect":"NoExecute"}]}`, `{"tolerations":[{"key":"a"}]}`,
			[]string{`tolerations[{"effect":"NoExecute","key":"a"}]`}},
		"a command that is wrapped":        {`{"command":["a"]}`, `{"command":["run","a"]}`, nil},
		"a container that moves":           {`{"containers":[{"name":"a","tty":true}]}`, `{"containers":[],"initContainers":[{"name":"a","tty":true}]}`, nil},
		"a container that moves and loses": {`{"containers":[{"name":"a","tty":true}]}`, `{"initContainers":[{"name":"a"}]}`, []string{"containers"}},
		"texts that are joined":            {`{"args":["--a=1","run b"]}`, `{"args":["sh --a=1 run b > log"]}`, nil},
		"texts of which one is joined":     {`{"args":["run a","run a"]}`, `{"args":["sh run a > log"]}`, []string{`args["run a"#2]`}},
		"an element that is completed":     {`{"parameters":[{}]}`, `{"parameters":[{"space":{"kind":"uniform"}}]}`, nil},
		"a quantity in its usual form":     {`{"flavors":[{"limit":"-.6493"}]}`, `{"flavors":[{"limit":"-649300u"}]}`, nil},
		"a text that is another":           {`{"searches":["a","b"]}`, `{"searches":["a","c"]}`, []string{`searches["b"]`}},
		"a text that is completed":         {`{"hostnames":["db"]}`, `{"hostnames":["db.example.com"]}`, nil},
		"a flag with another value":        {`{"args":["--port=1"]}`, `{"args":["--port=2"]}`, nil},
		"texts of which one is left":       {`{"searches":["a","b"]}`, `{"searches":["c"]}`, []string{`searches["a"]`, `searches["b"]`}},
		"a finalizer that is another":      {`{"finalizers":["a"]}`, `{"finalizers":["b"]}`, []string{`finalizers["a"]`}},
		"all capabilities":                 {`{"drop":["A","B"]}`, `{"drop":["ALL"]}`, nil},
		"a value in place of a reference":  {`{"env":[{"name":"A","valueFrom":{"fieldRef":{"fieldPath":"x"}}}]}`, `{"env":[{"name":"A","value":"b"}]}`, nil},
		"a probe of another kind":          {`{"readinessProbe":{"tcpSocket":{"port":1}}}`, `{"readinessProbe":{"httpGet":{"port":1}}}`, nil},
		"a probe of no kind":               {`{"readinessProbe":{"tcpSocket":{"port":1}}}`, `{"readinessProbe":{}}`, []string{`readinessProbe.tcpSocket`}},
		"a port that moves":                {`{"ports":[{"name":"http","containerPort":80}]}`, `{"ports":[{"name":"http","containerPort":81}]}`, nil},
		"a port that goes":                 {`{"ports":[{"containerPort":80},{"containerPort":81}]}`, `{"ports":[{"containerPort":82}]}`, []string{`ports[containerPort=80,protocol=TCP]`, `ports[containerPort=81,protocol=TCP]`}},
		"a source that is changed": {
			`{"sources":[{"serviceAccountToken":{"path":"token","expirationSeconds":600}}]}`, `{"sources":[{"serviceAccountToken":{"path":"token","expirationSeconds":900}}]}`, nil},
		"a source that is another": {
			`{"envFrom":[{"configMapRef":{"name":"a"}}]}`, `{"envFrom":[{"configMapRef":{"name":"b"}}]}`, []string{`envFrom[{"configMapRef":{"name":"a"}}]`}},
		"an empty name that is set": {
			`{"rules":[{"action":"fail","name":""}]}`, `{"rules":[{"action":"fail","name":"rule0"}]}`, nil},
		"an inner element that is completed": {
			`{"rules":[{"action":"fail","conditions":[{"type":"Ready"}]}]}`, `{"rules":[{"action":"fail","conditions":[{"type":"Ready","status":""}]}]}`, nil},
		"an inner element that goes": {
			`{"rules":[{"conditions":[{"type":"Ready"},{"type":"Live"}]}]}`, `{"rules":[{"conditions":[{"type":"Live"}]}]}`,
			[]string{`rules[{"conditions":[{"type":"Ready"},{"type":"Live"}]}].conditions[type=Ready]`}},
		"an element in its place": {
			`{"authorities":[{"keyless":{"url":"a"}},{"key":{"data":"x"}}]}`, `{"authorities":[{"keyless":{"issuers":["b"],"url":"c"}},{"key":{"data":"y"},"rank":"1"}]}`, nil},
		"an element in its place that loses": {
			`{"authorities":[{"keyless":{"url":"a"}},{"key":{"data":"x"}}]}`, `{"authorities":[{"keyless":{"issuers":["b"]}},{"key":{"data":"y"}}]}`,
			[]string{`authorities[{"keyless":{"url":"a"}}].keyless.url`}},
		"elements of which one is in place": {
			`{"authorities":[{"keyless":{"url":"a"}},{"key":{"data":"x"}}]}`, `{"authorities":[{"keyless":{"url":"c"}}]}`,
			[]string{`authorities[{"key":{"data":"x"}}]`, `authorities[{"keyless":{"url":"a"}}]`}},
		"an empty element that gets empty fields": {
			`{"containers":[{}]}`, `{"containers":[{"name":"","resources":{}}]}`, nil},
		"an empty element that is limited": {
			`{"ingress":[{}]}`, `{"ingress":[{"from":[{"podSelector":{"matchLabels":{"a":"b"}}}]}]}`, []string{`ingress[{}]`}},
		"a map":       {`{"labels":{"a":"1"}}`, `{"labels":{"b":"1"}}`, []string{"labels.a"}},
		"a container": {`{"containers":[{"name":"a","image":"x"}]}`, `{"containers":[{"name":"b","image":"x"}]}`, []string{"containers[name=a]"}},
	} {
		t.Run(name, func(t *testing.T) {
			from, to := parsed(t, tc.from), parsed(t, tc.to)
			var got []string
			for _, c := range losses(tree.Changes(from, to), from, to, noKeys) {
				got = append(got, c.Path.String())
			}
			slices.Sort(got)
			slices.Sort(tc.want)
			if !slices.Equal(got, tc.want) {
				t.Errorf("lost %q, want %q", got, tc.want)
			}
		})
	}
}

// noKeys reports that two elements have no equal keys, as for documents without a schema.
func noKeys(tree.Path, any, any) bool { return false }

func TestUnmounted(t *testing.T) {
	doc := parsed(t, `{"spec":{"containers":[{"name":"a","volumeMounts":[{"name":"v","mountPath":"/v"},{"name":"w","mountPath":"/w"}]},{"name":"b"}]}}`)
	const want = `{"spec":{"containers":[{"name":"a","volumeMounts":[{"mountPath":"/w","name":"w"}]},{"name":"b"}]}}`
	if got := unmounted(doc, "v"); !tree.Equal(got, parsed(t, want)) || mounts(doc, "v") != 1 {
		t.Errorf("got %s", tree.Encode(got))
	}
}
