// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/internal/cli/traffic"
	"github.com/admitkit/admitkit/pkg/record"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// recordedCall returns a call for an object of a core kind, whose patch adds a value at a path. An empty path means no
// patch.
func recordedCall(line int, kind, resource, object, path string) *traffic.Call {
	c := &traffic.Call{File: "calls", Call: &record.Call{Line: line, Path: "/mutate", Type: "mutating", Outcome: webhook.Allowed, Code: 200, Answer: []byte(`{}`)},
		Review: &admissionv1.AdmissionRequest{Operation: admissionv1.Create, Kind: metav1.GroupVersionKind{Version: "v1", Kind: kind},
			Resource: metav1.GroupVersionResource{Version: "v1", Resource: resource}, Object: runtime.RawExtension{Raw: []byte(object)}}}
	if path != "" {
		c.Outcome = webhook.Mutated
		c.Answer = fmt.Appendf(nil, `{"response":{"patch":%q}}`, base64.StdEncoding.EncodeToString(fmt.Appendf(nil, `[{"op":"add","path":%q,"value":1}]`, path)))
	}
	return c
}

func aPod(name string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":%q,"namespace":"shop"}}`, name)
}

func with(c *traffic.Call, change func(c *traffic.Call)) *traffic.Call {
	change(c)
	return c
}

func TestChooseSamples(t *testing.T) {
	pod := func(line int, name, path string) *traffic.Call {
		return recordedCall(line, "Pod", "pods", aPod(name), path)
	}
	service := `{"apiVersion":"v1","kind":"Service","metadata":{"generateName":"s-"}}`
	for _, row := range []struct {
		name, reason string
		calls        []*traffic.Call
		want         string
	}{
		{"alike", "one of those that are alike is enough", []*traffic.Call{pod(1, "a", "/spec/a"), pod(2, "b", "/spec/a"), pod(3, "c", "/spec/a")},
			"1 sample, 2 alike: a1"},
		{"patches", "the shape of the patch counts, without indexes", []*traffic.Call{pod(1, "a", "/spec/a/0"), pod(2, "b", "/spec/a/7"), pod(3, "c", "/spec/b/0")},
			"2 samples, 1 alike: a1 c3"},
		{"changed first", "objects that the webhook changes are better samples", []*traffic.Call{pod(1, "a", ""), pod(2, "b", "/spec/a")},
			"2 samples: b2 a1"},
		{"operations", "an update may have other fields", []*traffic.Call{pod(1, "a", ""), with(pod(2, "b", ""), func(c *traffic.Call) { c.Review.Operation = admissionv1.Update })},
			"2 samples: a1 b2"},
		{"denied", "it is the last choice", []*traffic.Call{with(pod(1, "a", ""), func(c *traffic.Call) { c.Outcome, c.Code = webhook.Denied, 403 }), pod(2, "b", "")},
			"2 samples: b2 a1"},
		{"limit", "a kind has few samples, and those that the webhook changes stay", []*traffic.Call{pod(1, "a", ""), pod(2, "b", "/b"), pod(3, "c", "/c"), pod(4, "d", "/d"), pod(5, "e", "/e"), pod(6, "f", "/f"), pod(7, "g", "/g")},
			"5 samples, 2 beyond the limit of 5 for each of 20 kinds: b2 c3 d4 e5 f6"},
		{"kinds", "each kind has samples", []*traffic.Call{pod(1, "a", "/a"), recordedCall(2, "Service", "services", service, "/a")},
			"2 samples: a1 s-2"},
		{"deletion", "there is nothing to change", []*traffic.Call{with(pod(1, "a", ""), func(c *traffic.Call) {
			c.Review.Operation, c.Review.Object.Raw, c.Review.OldObject.Raw = admissionv1.Delete, nil, c.Review.Object.Raw
		})}, "0 samples, 1 without an object to test, such as deletions and subresources: "},
		{"subresource", "the harness tests objects", []*traffic.Call{with(pod(1, "a", "/a"), func(c *traffic.Call) { c.Review.SubResource = "status" })},
			"0 samples, 1 without an object to test, such as deletions and subresources: "},
		{"not a Pod", "no API server sent this", []*traffic.Call{recordedCall(1, "Pod", "pods", `{"apiVersion":"v1","kind":"Pod","spec":[]}`, "/a"), recordedCall(2, "Pod", "pods", service, "/a"), pod(3, "a", "/a")},
			"1 sample, 2 with an object that cannot be decoded: a3"},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := newChooser()
			for _, call := range row.calls {
				c.add(call)
			}
			samples := c.samples()
			got := c.rest(len(samples)) + ": "
			for i, s := range samples {
				got += strings.Repeat(" ", min(i, 1)) + fmt.Sprint(s.Name, s.Line)
			}
			if got != row.want {
				t.Errorf("%s\n got %s\nwant %s", row.reason, got, row.want)
			}
		})
	}
}

// TestChooseIsBounded requires that the number of different calls does not matter for the memory, and that two runs choose
// the same.
func TestChooseIsBounded(t *testing.T) {
	const n = 3 * maxCombinations
	var runs [2]string
	for run := range runs {
		c := newChooser()
		for i := range n {
			kind := fmt.Sprintf("Kind%d", i%40)
			path := fmt.Sprintf("/spec/field%c%c%c%c", 'a'+i%26, 'a'+i/26%26, 'a'+i/676%26, 'a'+i/17576%26)
			c.add(recordedCall(i+1, kind, "things", fmt.Sprintf(`{"apiVersion":"v1","kind":%q,"metadata":{"name":"a"}}`, kind), path))
		}
		samples := c.samples()
		if len(samples) != maxSampledKinds*maxSamplesOfKind || len(c.seen) != maxCombinations {
			t.Fatalf("%d samples, %d combinations", len(samples), len(c.seen))
		}
		if want := fmt.Sprintf("%d beyond", n-len(samples)); !strings.Contains(c.rest(len(samples)), want) {
			t.Errorf("%s, want %s", c.rest(len(samples)), want)
		}
		for _, s := range samples {
			runs[run] += s.String() + "\n"
		}
	}
	if runs[0] != runs[1] {
		t.Errorf("the runs differ:\n%s\n%s", runs[0], runs[1])
	}
}

func TestWhoseCall(t *testing.T) {
	h := target{MutatingWebhook: admissionregistrationv1.MutatingWebhook{Name: "a.example.com",
		ClientConfig: admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{Path: ptr.To("/mutate")}},
		Rules: []admissionregistrationv1.RuleWithOperations{{Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Update},
			Rule: admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}}}},
	}, urls: []string{"https://127.0.0.1:9443/other?x"}}
	for _, row := range []struct {
		name              string
		hook              target
		change            func(c *traffic.Call)
		received, handles bool
	}{
		{"its path", h, func(*traffic.Call) {}, true, true},
		{"the path of its URL", h, func(c *traffic.Call) { c.Path = "/other" }, true, true},
		{"another path", h, func(c *traffic.Call) { c.Path = "/x" }, false, true},
		{"its name", h, func(c *traffic.Call) { c.Path, c.Webhook = "/x", "a.example.com" }, true, true},
		{"no path", h, func(c *traffic.Call) { c.Path = "" }, false, true},
		{"a validating webhook", h, func(c *traffic.Call) { c.Type = "validating" }, false, true},
		{"another operation, another kind", h, func(c *traffic.Call) { c.Path, c.Review.Resource.Resource = "/x", "services" }, false, false},
		{"a subresource", h, func(c *traffic.Call) { c.Path, c.Review.SubResource = "/x", "status" }, false, false},
		{"no configuration", target{urls: []string{"https://127.0.0.1/mutate"}}, func(*traffic.Call) {}, true, false},
		{"no configuration, another path", target{urls: []string{"https://127.0.0.1/"}}, func(*traffic.Call) {}, false, false},
		{"no configuration, the root", target{urls: []string{"https://127.0.0.1"}}, func(c *traffic.Call) { c.Path = "/" }, true, false},
	} {
		call := with(recordedCall(1, "Pod", "pods", aPod("a"), ""), row.change)
		if got := row.hook.received(call); got != row.received {
			t.Errorf("%s: received is %v", row.name, got)
		}
		if got := row.hook.handles(call); got != row.handles {
			t.Errorf("%s: handles is %v", row.name, got)
		}
	}
}
