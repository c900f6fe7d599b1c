// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/admitkit/admitkit/internal/cli/screen"
	"github.com/admitkit/admitkit/internal/problem"
)

// TestTrafficCauses checks what the report says about a recorded call when one property of the webhook changes.
func TestTrafficCauses(t *testing.T) {
	const rules = `rules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [pods]}]`
	hook := func(fields string) string {
		return `{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingWebhookConfiguration, metadata: {name: m}, webhooks: [{name: m.example.com, ` +
			`clientConfig: {url: "https://hooks.example.com/m"}, sideEffects: None, admissionReviewVersions: [v1], ` + fields + `}]}`
	}
	condition := func(expression string) string {
		return fmt.Sprintf(`, matchConditions: [{name: c, expression: '%s'}]`, expression)
	}
	const other = `{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingWebhookConfiguration, metadata: {name: other}, webhooks: [{name: other.example.com, ` +
		`clientConfig: {url: "https://hooks.example.com/n"}, sideEffects: None, admissionReviewVersions: [v1], rules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [services]}]}]}`
	const secret = `"kind":{"group":"","version":"v1","kind":"Secret"},"resource":{"group":"","version":"v1","resource":"secrets"},`
	const pod = `"kind":{"group":"","version":"v1","kind":"Pod"},"resource":{"group":"","version":"v1","resource":"pods"},`
	const all = `rules: [{operations: ["*"], apiGroups: ["*"], apiVersions: ["*"], resources: ["*/*"]}]`
	base := `{"format":"admitkit-record/1","path":"/m","type":"mutating","outcome":"allowed","code":200,"durationSeconds":0.1,"key":"k","request":{"request":{` + pod +
		`"name":"web","namespace":"shop","operation":"CREATE","userInfo":{"username":"jane"},"object":` + string(encodeYAML(t, aPod)) + `}},"answer":{}}` + "\n"
	line := func(replacements ...string) string { return strings.NewReplacer(replacements...).Replace(base) }
	ofSecret := line(pod, secret, `"kind":"Pod"`, `"kind":"Secret"`, `"spec":`, `"data":{"a":"eA=="},"unknown":`)
	for _, row := range []struct {
		name, now, before, line, namespaces, want string
	}{
		{name: "as before", now: hook(rules), line: base, want: "kept"},
		{name: "selector", now: hook(rules + ", objectSelector: {matchLabels: {app: db}}"), line: base, want: "lost: objectSelector app=db; app=db: the object has app=web"},
		{name: "rules", now: hook(strings.Replace(rules, "CREATE", "UPDATE", 1)), line: base, want: `lost: no rule is for CREATE of v1 pods; rules[0] has operations ["UPDATE"]`},
		{name: "condition", now: hook(rules + condition(`request.userInfo.username != "jane"`)), line: base, want: `lost: matchCondition "c" is false; `},
		{name: "condition with an error", now: hook(rules + condition(`object.metadata.labels.x == "y"`)), line: base,
			want: `lost: matchCondition "c" cannot be evaluated, so the request is rejected; condition "c" cannot be evaluated: expression 'object.metadata.labels.x == "y"' resulted in error: no such key: x`},
		{name: "condition with an error, ignored", now: hook(rules + ", failurePolicy: Ignore" + condition(`object.metadata.labels.x == "y"`)), line: base, want: `lost: matchCondition "c" cannot be evaluated; `},
		{name: "condition that rejects now", now: hook(rules + condition(`object.metadata.labels.x == "y"`)), before: hook(rules + condition(`false`)), line: line("/m", "/x"),
			want: `rejected: matchCondition "c" cannot be evaluated, so the request is rejected; condition "c"`},
		{name: "namespace unknown", now: hook(rules + ", namespaceSelector: {matchLabels: {team: web}}"), line: base, want: `unknown: namespaceSelector team=web: the labels of namespace "shop" are unknown; `},
		{name: "namespace given", now: hook(rules + ", namespaceSelector: {matchLabels: {team: db}}"), line: base, namespaces: theShop, want: `lost: namespaceSelector team=db; team=db: namespace "shop" has team=web`},
		{name: "namespace unknown as before", now: hook(rules + ", namespaceSelector: {matchLabels: {team: web}}" + condition("true")),
			before: hook(rules + ", namespaceSelector: {matchLabels: {team: web}}"), line: base, want: "kept"},
		{name: "namespace unknown as before, lost", now: hook(rules + ", namespaceSelector: {matchLabels: {team: web}}" + condition("false")),
			before: hook(rules + ", namespaceSelector: {matchLabels: {team: web}}"), line: base, want: `lost: matchCondition "c" is false; `},
		{name: "namespace unknown, another selector", now: hook(rules + ", namespaceSelector: {matchLabels: {team: web}}"),
			before: hook(rules + ", namespaceSelector: {matchLabels: {team: db}}"), line: base, want: "unknown: namespaceSelector team=web"},
		{name: "authorizer", now: hook(rules + condition(`authorizer.group("").resource("pods").check("get").allowed()`)), line: base, want: `unknown: condition "c": whether jane may get pods is not known; `},
		{name: "authorizer as before", now: hook(rules + condition(`authorizer.group("").resource("pods").check("get").allowed()`) + ", objectSelector: {matchLabels: {app: web}}"),
			before: hook(rules + condition(`authorizer.group("").resource("pods").check("get").allowed()`)), line: base, want: "kept"},
		{name: "plugins have run", now: hook(rules + condition(`has(object.spec.tolerations)`)), line: base, want: `lost: matchCondition "c" is false; `},
		{name: "plugins have run, for a validating webhook", now: strings.Replace(hook(rules+condition(`has(object.spec.tolerations)`)), "Mutating", "Validating", 1), line: line("mutating", "validating"), want: `lost: matchCondition "c" is false; `},
		{name: "redacted", now: hook(all + condition(`object.data.a == "eA=="`)), line: ofSecret, want: `unknown: condition "c": it reads values that the recording replaces by pseudonyms; `},
		{name: "not redacted", now: hook(all + condition(`object.data.a == "eA=="`)), line: strings.Replace(ofSecret, `"key":"k"`, `"key":""`, 1), want: "kept"},
		{name: "redacted, but its name is not", now: hook(all + condition(`object.metadata.name == "x"`)), line: ofSecret, want: `lost: matchCondition "c" is false; `},
		{name: "redacted user", now: hook(rules + condition(`request.userInfo.extra.size() == 0`)), line: line(`"username":"jane"`, `"username":"jane","extra":{"a":["x"]}`), want: `unknown: condition "c": the extra fields of user jane are unknown`},
		{name: "user without extra fields", now: hook(rules + condition(`!has(request.userInfo.extra)`)), line: base, want: "kept"},
		{name: "converted, Exact", now: hook(rules + ", matchPolicy: Exact"), line: line(`"name":"web","namespace"`, `"requestResource":{"group":"example.com","version":"v1","resource":"pods"},"name":"web","namespace"`),
			want: "lost: no rule is for CREATE of example.com/v1 pods; "},
		{name: "converted, and the original matches", now: hook(all + ", matchPolicy: Exact"), line: line(`"name":"web","namespace"`, `"requestResource":{"group":"example.com","version":"v1","resource":"pods"},"name":"web","namespace"`),
			want: "unknown: the API request is for example.com/v1, and the recording has the object in v1; "},
		{name: "removed", now: other, before: hook(rules), line: base, want: "lost: the webhook is not in the configurations; "},
		{name: "gained", now: hook(rules), before: hook(rules + ", objectSelector: {matchLabels: {app: db}}"), line: line("/m", "/x"), want: "gained: before, objectSelector app=db; app=db: the object has app=web"},
		{name: "new", now: hook(rules), line: line("/m", "/x"), want: "gained: rules[0] is for CREATE of v1 pods; "},
		{name: "nothing changes", now: hook(rules), before: hook(rules), line: line("/m", "/x"), want: ""},
		{name: "another type", now: hook(rules), line: line("mutating", "validating"), want: "gained: rules[0] is for CREATE of v1 pods; "},
		{name: "its name", now: hook(rules), line: line(`"path":"/m"`, `"path":"/x","webhook":"m.example.com"`), want: "kept"},
		{name: "contradicted", now: hook(rules + ", objectSelector: {}"), before: hook(rules + ", objectSelector: {matchLabels: {app: db}}"), line: base,
			want: "kept; 1 call that the configurations of --against would not send to the webhook that received them: were other ones applied then?"},
		{name: "not an object", now: hook(rules), line: line(`"kind":"Pod","metadata"`, `"kind":"Pod","spec":7,"metadata"`), want: "unknown: the request cannot be explained: "},
		{name: "no such kind", now: hook(all), line: line(`"kind":"Pod"`, `"kind":"Shop"`, "pods", "shops", `"group":""`, `"group":"example.com"`, `"apiVersion":"v1"`, `"apiVersion":"example.com/v1"`), want: "kept"},
	} {
		t.Run(row.name, func(t *testing.T) {
			dir := t.TempDir()
			write := func(name, text string) []string {
				if text == "" {
					return nil
				}
				name = filepath.Join(dir, name)
				if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
				return []string{name}
			}
			o := &Options{Traffic: write("calls.jsonl", row.line), Configurations: write("now.yaml", row.now), Against: write("old.yaml", row.before), Files: write("namespaces.yaml", row.namespaces)}
			report, err := RunTraffic(t.Context(), o, &screen.Screen{Out: io.Discard, Err: io.Discard})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, w := range report.Webhooks {
				if w.Kept > 0 {
					got = append(got, "kept")
				}
			}
			for _, c := range report.Changes {
				got = append(got, fmt.Sprintf("%s: %s; %s", c.Change, c.Cause, c.Example.Why))
			}
			for _, note := range report.Notes {
				if !strings.Contains(note, "the name or path of no webhook") {
					got = append(got, note)
				}
			}
			if text := strings.Join(got, "; "); !strings.HasPrefix(text, row.want) || row.want == "" && text != "" || row.want == "kept" && text != "kept" {
				t.Errorf("got  %s\nwant %s", text, row.want)
			}
			verdict := "kept"
			switch err := report.Verdict(); {
			case errors.Is(err, problem.ErrFound):
				verdict = "changed"
			case err != nil:
				verdict = "unknown"
			}
			if want := verdictOf(report.Changes); verdict != want {
				t.Errorf("verdict %s, want %s", verdict, want)
			}
		})
	}
}

// verdictOf returns what the exit code has to tell.
func verdictOf(changes []*TrafficChange) string {
	switch {
	case len(changes) == 0:
		return "kept"
	case slices.ContainsFunc(changes, func(c *TrafficChange) bool { return c.Change == "unknown" }):
		return "unknown"
	}
	return "changed"
}

func encodeYAML(t *testing.T, text string) []byte {
	t.Helper()
	out, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return out
}
