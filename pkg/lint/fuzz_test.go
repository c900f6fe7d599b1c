// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// FuzzRun passes arbitrary objects to Run. Run must return complete findings, return the same ones again, and not
// change the objects.
func FuzzRun(f *testing.F) {
	files, err := filepath.Glob("testdata/projects/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for _, document := range strings.Split(string(text), "\n---\n") {
			f.Add([]byte(document))
		}
	}
	f.Add([]byte(mutating(`annotations: {lint.admitkit.dev/ignore: "AK402=;@=;AK203@[=x"}`)))
	f.Add([]byte(mutating(`matchConditions: [{name: a, expression: "request.namespace in ['a', object.metadata.labels]"}]`)))
	f.Add([]byte(mutating("clientConfig: {url: \"https://a.b.svc:x/%zz\", caBundle: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCi0tLS0tRU5EIENFUlRJRklDQVRFLS0tLS0K}")))
	rules := map[string]bool{}
	for _, r := range Rules() {
		rules[r.ID] = true
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > 1<<14 {
			return
		}
		u := &unstructured.Unstructured{}
		if yaml.Unmarshal(text, &u.Object) != nil || u.Object == nil {
			return
		}
		given, err := json.Marshal(u.Object)
		if err != nil {
			return
		}
		input := Input{Objects: []runtime.Object{u, u}}
		first := Run(input, Options{Now: clock, Live: len(text)%2 == 0})
		for _, finding := range first {
			if !rules[finding.Rule] || finding.Message == "" || finding.Fix == "" || finding.Index < 0 || finding.Index > 1 {
				t.Errorf("%+v", finding)
			}
		}
		again, err := json.Marshal(Run(input, Options{Now: clock, Live: len(text)%2 == 0}))
		if err != nil {
			t.Fatal(err)
		}
		if encoded, err := json.Marshal(first); err != nil || string(encoded) != string(again) {
			t.Errorf("two runs differ: %v\n%s\n%s", err, encoded, again)
		}
		if left, err := json.Marshal(u.Object); err != nil || string(left) != string(given) {
			t.Errorf("the object was changed: %v\n%s\n%s", err, given, left)
		}
	})
}
