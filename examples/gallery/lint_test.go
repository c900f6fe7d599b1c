// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/admitkit/admitkit/pkg/lint"
)

// accepted has the findings that a policy cannot avoid, with the reasons.
var accepted = map[string]string{
	"NamespaceExists AK206": "as the original, it is called for every resource in a namespace; its failurePolicy is Ignore",
}

// TestNoLockouts lints the configuration of each policy. No policy may block what a cluster needs in order to repair
// itself while the webhook is down.
func TestNoLockouts(t *testing.T) {
	files := required(t)
	for _, name := range slices.Sorted(maps.Keys(policies)) {
		args := []string{"--print-configuration", "--enable=" + name}
		if content, ok := files[name]; ok {
			args = append(args, "--config="+name+"="+write(t, content))
		}
		output, message := run(t, args...)
		if message != "" {
			t.Fatalf("%s: %s", name, message)
		}
		var objects []runtime.Object
		for document := range strings.SplitSeq(output, "\n---\n") {
			object := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
				t.Fatal(err)
			}
			if object.Object != nil {
				objects = append(objects, object)
			}
		}
		for _, f := range lint.Run(lint.Input{Objects: objects}, lint.Options{}) {
			isLockout := strings.HasPrefix(f.Rule, "AK20") && f.Rule != "AK209"
			if key := name + " " + f.Rule; (f.Severity == lint.Error || isLockout) && accepted[key] == "" {
				t.Errorf("%s: %s %s %s: %s", key, f.Severity, f.Webhook, f.Message, f.Fix)
			}
		}
	}
}
