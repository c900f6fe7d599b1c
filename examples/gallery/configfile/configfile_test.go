// SPDX-License-Identifier: Apache-2.0

package configfile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

type config struct {
	metav1.TypeMeta `json:",inline"`
	Limits          []limit             `json:"limits,omitempty"`
	Requests        corev1.ResourceList `json:"requests,omitempty"`
	Selectors       map[string]string   `json:"selectors,omitempty"`
	Volumes         []corev1.Volume     `json:"volumes,omitempty"`
	Hidden          string              `json:"-"`
}

type limit struct {
	Name      string   `json:"name"`
	QPS       int32    `json:"qps"`
	CacheSize *int64   `json:"cacheSize"`
	Share     float64  `json:"share"`
	On        bool     `json:"on"`
	Users     []string `json:"users"`
}

func write(t *testing.T, content string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "a.yaml")
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func noCheck(*config) field.ErrorList { return nil }

func TestErrors(t *testing.T) {
	t.Parallel()
	rows := []struct{ reason, content, want string }{
		{"empty", "", "FILE:1: the file is empty: must be a map with the fields apiVersion, kind, limits, requests, selectors, volumes"},
		{"only a comment", "# limits:\n", "FILE:1: the file is empty: must be"},
		{"only a marker", "---\n", "FILE:1: the file is empty: must be"},
		{"not YAML", "limits: {", "FILE:1: not valid YAML: "},
		{"not YAML in line 3", "limits:\n- name: a\n  qps: 1: 2\n", "FILE:3: not valid YAML: mapping values are not allowed in this context"},
		{"a tab", "limits:\n\t- name: a\n", "FILE:2: not valid YAML: found character that cannot start any token: indent with spaces instead of tabs"},
		{"two documents", "kind: a\n---\nkind: b\n", "FILE:3: the file has 2 documents, and only one is allowed: remove the others"},
		{"a cycle", "selectors: &a {b: *a}\n", "FILE:1: not valid YAML: anchor 'a' value contains itself"},
		{"not a map", "- a\n", "FILE:1: must be a map with the fields apiVersion, kind, limits, requests, selectors, volumes, not a list"},
		{"a word", "a\n", `FILE:1: must be a map with the fields apiVersion, kind, limits, requests, selectors, volumes, not "a"`},
		{"unknown field", "kind: a\nlimit: []\n", "FILE:2: limit: unknown field: did you mean limits?"},
		{"another case", "limits:\n- cachesize: 1\n", "FILE:2: limits[0].cachesize: unknown field: did you mean cacheSize?"},
		{"nothing similar", "limits:\n- {name: a}\n- name: b\n  burst: 1\n", "FILE:4: limits[1].burst: unknown field: allowed are cacheSize, name, on, qps, share, users"},
		{"not in the file", "Hidden: a\n", "FILE:1: Hidden: unknown field: allowed are apiVersion"},
		{"set twice", "selectors:\n  a: b\n  c: d\n  a: e\n", "FILE:4: selectors[a]: is already set in line 2: remove one"},
		{"field set twice", "kind: a\nkind: b\n", "FILE:2: kind: is already set in line 1: remove one"},
		{"a word for an integer", "limits:\n- name: a\n  qps: fast\n", `FILE:3: limits[0].qps: Invalid value: "fast": must be an integer up to 2147483647`},
		{"a quoted integer", "limits: [{qps: '1'}]\n", `FILE:1: limits[0].qps: Invalid value: "1": must be an integer`},
		{"too large", "limits: [{qps: 2147483648}]\n", `FILE:1: limits[0].qps: Invalid value: 2147483648: must be an integer up to 2147483647`},
		{"a fraction", "limits: [{cacheSize: 1.5}]\n", `FILE:1: limits[0].cacheSize: Invalid value: 1.5: must be an integer`},
		{"a list for an integer", "limits: [{cacheSize: [1]}]\n", `FILE:1: limits[0].cacheSize: must be an integer, not a list`},
		{"a word for a number", "limits: [{share: half}]\n", `FILE:1: limits[0].share: Invalid value: "half": must be a number`},
		{"a word for a boolean", "limits: [{on: always}]\n", `FILE:1: limits[0].on: Invalid value: "always": must be true or false`},
		{"a quoted boolean", "limits: [{on: 'yes'}]\n", `FILE:1: limits[0].on: Invalid value: "yes": must be true or false`},
		{"a number for a string", "selectors: {a: 1.30}\n", `FILE:1: selectors[a]: Invalid value: 1.30: must be a string: write "1.30"`},
		{"a boolean for a string", "selectors: {a: true}\n", `FILE:1: selectors[a]: Invalid value: true: must be a string: write "true"`},
		{"a map for a string", "selectors: {a: {b: c}}\n", `FILE:1: selectors[a]: must be a string, not a map`},
		{"a string for a list", "limits:\n- users:\n    ann\n", `FILE:3: limits[0].users: must be a list, not "ann"`},
		{"a list for a map", "selectors: [a]\n", `FILE:1: selectors: must be a map, not a list`},
		{"a string for an object", "limits: [a]\n", `FILE:1: limits[0]: must be a map with the fields cacheSize, name, on, qps, share, users, not "a"`},
		{"a quantity", "requests:\n  cpu: many\n", `FILE:2: requests[cpu]: Invalid value: "many": must be a quantity such as 100m, 2 or 128Mi`},
		{"a list for a quantity", "requests:\n  cpu: [1]\n", `FILE:2: requests[cpu]: Invalid value: a list: must be a quantity`},
		{"a field in an inline struct", "volumes:\n- name: a\n  emptydir: {}\n", `FILE:3: volumes[0].emptydir: unknown field: did you mean emptyDir?`},
		{"several", "limits:\n- {qps: a}\nkinds: b\n", "FILE:2: limits[0].qps: Invalid value: \"a\": must be an integer up to 2147483647\nFILE:3: kinds: unknown field: did you mean kind?"},
	}
	for _, row := range rows {
		t.Run(row.reason, func(t *testing.T) {
			t.Parallel()
			file := write(t, row.content)
			_, err := Load(file, Type{}, noCheck)
			if err == nil {
				t.Fatal("there is no error")
			}
			if got := strings.ReplaceAll(err.Error(), file, "FILE"); !strings.HasPrefix(got, row.want) {
				t.Errorf("got  %s\nwant %s", got, row.want)
			}
		})
	}
	if _, err := Load(filepath.Join(t.TempDir(), "missing"), Type{}, noCheck); err == nil || !strings.Contains(err.Error(), "missing") {
		t.Errorf("a missing file: got %v", err)
	}
}

func TestType(t *testing.T) {
	t.Parallel()
	const begin = "begin the file with apiVersion: example.com/v1 and kind: Config"
	rows := []struct{ reason, content, want string }{
		{"valid", "apiVersion: example.com/v1beta1\nkind: Config\n", ""},
		{"empty", "\n", "FILE:1: the file is empty: " + begin},
		{"neither", "\nlimits: []\n", "FILE:2: apiVersion: Required value: " + begin},
		{"no kind", "apiVersion: example.com/v1\n", "FILE:1: kind: Required value: " + begin},
		{"version", "kind: Config\napiVersion: example.com/v3\n", `FILE:2: apiVersion: Unsupported value: "example.com/v3": supported values: "example.com/v1", "example.com/v1beta1"`},
		{"kind", "apiVersion: example.com/v1\nkind: Other\nunknown: a\n", `FILE:2: kind: Unsupported value: "Other": supported values: "Config"`},
		{"for the API server", "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins: []\n", `FILE:2: kind: Unsupported value: "AdmissionConfiguration": this file is for --admission-control-config-file of the API server: ` +
			"name a file with only the configuration of this plugin: " + begin},
		{"a list", "- a\n", "FILE:1: must be a map with the fields apiVersion, kind, limits, requests, selectors, volumes, not a list"},
	}
	for _, row := range rows {
		t.Run(row.reason, func(t *testing.T) {
			t.Parallel()
			file := write(t, row.content)
			got := ""
			if _, err := Load(file, Type{[]string{"example.com/v1", "example.com/v1beta1"}, "Config"}, noCheck); err != nil {
				got = strings.ReplaceAll(err.Error(), file, "FILE")
			}
			if got != row.want {
				t.Errorf("got  %s\nwant %s", got, row.want)
			}
		})
	}
}

func TestValid(t *testing.T) {
	t.Parallel()
	size := int64(0x10)
	rows := []struct {
		reason, content string
		want            config
	}{
		{"every type", "---\nlimits: [{name: yes, qps: 1, cacheSize: 0x10, share: 1, on: yes, users: [ann, 2020-01-01]}]\n---\n", config{
			Limits: []limit{{Name: "yes", QPS: 1, CacheSize: &size, Share: 1, On: true, Users: []string{"ann", "2020-01-01"}}},
		}},
		{"JSON", `{"kind": "a", "requests": {"cpu": 0.1, "memory": "1Gi"}}`, config{
			TypeMeta: metav1.TypeMeta{Kind: "a"}, Requests: corev1.ResourceList{"cpu": resource.MustParse("100m"), "memory": resource.MustParse("1Gi")},
		}},
		{"null", "limits:\nselectors: {a: , b: ~}\n", config{Selectors: map[string]string{"a": "", "b": ""}}},
		{"aliases", "selectors: &a {b: &c d, e: *c}\nlimits: [{name: *c}]\n", config{Selectors: map[string]string{"b": "d", "e": "d"}, Limits: []limit{{Name: "d"}}}},
		{"merge keys", "limits:\n- &a {name: a, qps: 1}\n- {<<: *a, qps: 2}\n- {<<: [*a, {on: true}]}\n", config{
			Limits: []limit{{Name: "a", QPS: 1}, {Name: "a", QPS: 2}, {Name: "a", QPS: 1, On: true}},
		}},
		{"an inline struct", "volumes: [{name: a, secret: {secretName: b, defaultMode: 0644}}]\n", config{
			Volumes: []corev1.Volume{{Name: "a", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "b", DefaultMode: new(int32)}}}},
		}},
	}
	*rows[len(rows)-1].want.Volumes[0].Secret.DefaultMode = 0o644
	for _, row := range rows {
		t.Run(row.reason, func(t *testing.T) {
			t.Parallel()
			got, err := Load(write(t, row.content), Type{}, noCheck)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Load finds the line of an error from the path of its field.
func TestLinesOfErrors(t *testing.T) {
	t.Parallel()
	file := write(t, "limits:\n- name: a\n- &b\n  name: b\n  users:\n  - ann\n  - bob\nselectors:\n  example.com/a.b: c\n  d: e\n")
	var root *field.Path
	rows := []struct {
		at   *field.Path
		want string
	}{
		{root, "1: Required value"},
		{root.Child("kind"), "1: kind: Required value"},
		{root.Child("limits").Index(1), "3: limits[1]: Required value"},
		{root.Child("limits").Index(1).Child("name"), "4: limits[1].name: Required value"},
		{root.Child("limits").Index(1).Child("users").Index(1), "7: limits[1].users[1]: Required value"},
		{root.Child("limits").Index(0).Child("users").Index(1), "2: limits[0].users[1]: Required value"},
		{root.Child("limits").Index(7).Child("name"), "1: limits[7].name: Required value"},
		{root.Child("selectors").Key("example.com/a.b"), "9: selectors[example.com/a.b]: Required value"},
	}
	for _, row := range rows {
		_, err := Load(file, Type{}, func(*config) field.ErrorList { return field.ErrorList{field.Required(row.at, "")} })
		if want := file + ":" + row.want; err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}

func TestNearest(t *testing.T) {
	t.Parallel()
	names := []string{"AlwaysPullImages", "LimitRanger", "PodPreset", "PodSecurity", "Priority"}
	for written, want := range map[string]string{
		"AlwaysPullImage": "AlwaysPullImages", "podsecurity": "PodSecurity", "PodReset": "PodPreset", "Priorities": "Priority", "ResourceQuota": "", "": "",
	} {
		if got := Nearest(written, names); got != want {
			t.Errorf("%q: got %q, want %q", written, got, want)
		}
	}
}
