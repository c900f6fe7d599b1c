// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"fmt"
	"strings"
	"testing"

	"github.com/admitkit/admitkit/internal/cli/screen"
)

// would returns the annotations of a hook in a mode.
func would(name, mode, key, text string) map[string]string {
	return map[string]string{name + "/mode": mode, name + "/would-" + key: text}
}

const owned = `{"kind":"Pod","metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"n"},{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web","controller":true}]}}`

// TestWithheld checks how requests are counted: by webhook, mode, outcome, namespace, owner or user, and reason.
func TestWithheld(t *testing.T) {
	const name, manager = "a.example.com", "system:serviceaccount:kube-system:replicaset-controller"
	for _, c := range []struct {
		reason string
		events []event
		want   string
	}{
		{"a denial, twice", many(2, event{Annotations: would(name, "Shadow", "deny", "no owner")}), "2 a.example.com Shadow denied shop/user jane: no owner"},
		{"a change and a failure", []event{
			{Annotations: would(name, "Shadow", "change", "add /spec")}, {Annotations: would("b.example.com", "Warn", "fail", "too late")},
		}, "1 b.example.com Warn failed shop/user jane: too late; 1 a.example.com Shadow mutated shop/user jane: add /spec"},
		{"the controller of a new Pod", []event{
			{Verb: "create", User: manager, Object: owned, Annotations: would(name, "Warn", "deny", "no")}, {Verb: "create", User: "joe", Object: owned, Annotations: would(name, "Warn", "deny", "no")},
		}, "2 a.example.com Warn denied shop/ReplicaSet web: no"},
		{"an owner that is not the controller", []event{{Object: strings.Replace(owned, "true", "false", 1), Annotations: would(name, "Warn", "deny", "no")}}, "1 a.example.com Warn denied shop/user jane: no"},
		{"owner references that are none", []event{{Object: `{"metadata":{"ownerReferences":"x"}}`, Annotations: would(name, "Warn", "deny", "no")}}, "1 a.example.com Warn denied shop/user jane: no"},
		{"the body of a PATCH", []event{{Verb: "patch", Object: owned, Annotations: would(name, "Warn", "deny", "no")}}, "1 a.example.com Warn denied shop/user jane: no"},
		{"several modes and namespaces", []event{
			{Annotations: would(name, "Warn", "deny", "no")}, {Annotations: would(name, "Shadow", "deny", "no")}, {Namespace: "bank", Annotations: would(name, "Warn", "deny", "no")},
		}, "1 a.example.com Warn denied bank/user jane: no; 1 a.example.com Warn denied shop/user jane: no; 1 a.example.com Shadow denied shop/user jane: no"},
		{"the reason with the most requests first", append(many(3, event{Annotations: would(name, "Warn", "deny", "z")}), event{Annotations: would(name, "Warn", "deny", "b")}),
			"3 a.example.com Warn denied shop/user jane: z; 1 a.example.com Warn denied shop/user jane: b"},
		{"the name of the object", []event{
			{Name: "web-1", Annotations: would(name, "Warn", "deny", `pods "web-1" has no owner, and shop/web-1 neither`)}, {Name: "db", Annotations: would(name, "Warn", "deny", `pods "db" has no owner, and shop/… neither`)},
		}, `2 a.example.com Warn denied shop/user jane: pods "…" has no owner, and shop/… neither`},
		{"a name that is a word of the text", []event{{Name: "image", Annotations: would(name, "Warn", "deny", "the image of image-1 has no digest")}}, "1 a.example.com Warn denied shop/user jane: the image of image-1 has no digest"},
		{"a longer name in the text", []event{{Name: "web-1", Annotations: would(name, "Warn", "deny", "web-1-a and a.web-1 and web-1.")}}, "1 a.example.com Warn denied shop/user jane: web-1-a and a.web-1 and …."},
		{"generated names", []event{
			{Name: "x", Annotations: would(name, "Warn", "deny", `pods "web-6d4cf56db6-x2xcd" is forbidden`)}, {Name: "x", Annotations: would(name, "Warn", "deny", `pods "web-6d4cf56db6-bbbbb" is forbidden`)},
		}, `2 a.example.com Warn denied shop/user jane: pods "…" is forbidden`},

		{"no mode", []event{{Annotations: map[string]string{name + "/would-deny": "no"}}}, ""},
		{"the mode of another hook", []event{{Annotations: map[string]string{name + "/would-deny": "no", "b.example.com/mode": "Warn"}}}, ""},
		{"a mode that does not exist", []event{{Annotations: would(name, "Audit", "deny", "no")}}, ""},
		{"another annotation", []event{{Annotations: map[string]string{name + "/mode": "Shadow", name + "/rule": "would-deny"}}}, ""},
		{"a hook that the report does not cover", []event{{Annotations: would("other.example.com", "Shadow", "deny", "no")}, {Annotations: map[string]string{name + "/rule": "x"}}}, ""},
	} {
		t.Run(c.reason, func(t *testing.T) {
			var log strings.Builder
			for i, e := range c.events {
				e.ID, e.Second = fmt.Sprint(i), i
				log.WriteString(e.line())
			}
			for _, only := range []bool{false, true} {
				o := defaults()
				o.Withheld, o.Webhooks = only, []string{name, "b.example.com"}
				r := read(t, o, log.String())
				var got []string
				for _, w := range r.Withheld {
					got = append(got, fmt.Sprintf("%d %s %s %s %s/%s: %s", w.Requests, w.Webhook, w.Mode, w.Outcome, w.where(), w.who(), w.Reason))
					if w.Example.AuditID == "" || w.Example.Time.IsZero() || w.ExampleReason == "" {
						t.Errorf("the example is %+v", w)
					}
				}
				if text := strings.Join(got, "; "); text != c.want {
					t.Errorf("got  %s\nwant %s", text, c.want)
				}
				if wants := only && (strings.Contains(c.want, "denied") || strings.Contains(c.want, "failed")); r.Found() != wants {
					t.Errorf("only withheld decisions (%v): something is found: %v", only, r.Found())
				}
			}
		})
	}
}

// TestWithheldExample checks that the example is the earliest request, whatever the order of the log is.
func TestWithheldExample(t *testing.T) {
	first := event{ID: "first", Name: "web-1", Second: 1, Annotations: would("a.example.com", "Warn", "deny", `pods "web-1" has no owner`)}.line()
	later := event{ID: "later", Name: "web-2", Second: 2, Annotations: would("a.example.com", "Warn", "deny", `pods "web-2" has no owner`)}.line()
	for _, log := range []string{first + later, later + first} {
		w := read(t, defaults(), log).Withheld
		if len(w) != 1 || w[0].Requests != 2 || w[0].Example.AuditID != "first" || w[0].ExampleReason != `pods "web-1" has no owner` {
			t.Errorf("got %+v", w)
		}
	}
}

// TestOnlyWithheld checks that a report with only withheld decisions has no other facts, in each output format.
func TestOnlyWithheld(t *testing.T) {
	log := event{ID: "a", Code: 500, Message: failure, Calls: []recordedCall{{Hook: "a.example.com", FailedOpen: true}}, Annotations: would("a.example.com", "Warn", "fail", "too late")}.line() +
		event{ID: "b", Annotations: would("a.example.com", "Shadow", "change", "add /spec")}.line()
	o := defaults()
	o.Withheld = true
	r := read(t, o, log)
	var text, junit, page strings.Builder
	for _, err := range []error{r.WriteText(&text, screen.Painter{}), r.WriteJUnit(&junit), r.Page().Write(&page)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(r.Mutating)+len(r.Validating)+len(r.AuditAnnotations)+len(r.Findings) > 0 || len(r.Withheld) != 2 {
		t.Errorf("the report is %+v", r)
	}
	for what, in := range map[string]string{
		"a.example.com in Warn would have failed:": text.String(), "Withheld: 1 failure, 1 change.": text.String(), "add /spec": page.String(),
		`tests="2" failures="1"`: junit.String(), `<failure type="failed" message="too late">`: junit.String(),
	} {
		if !strings.Contains(in, what) {
			t.Errorf("%q is missing in\n%s", what, in)
		}
	}
	r = read(t, o, event{ID: "c"}.line())
	if text := r.verdict(); r.Found() || text != "No withheld decisions." {
		t.Errorf("without any: %q", text)
	}
}
