// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
)

// An event describes the audit event of a request for a test. The method line encodes the event as the API server does.
type event struct {
	ID, Verb, Level, Stage, User, Message, URI string
	Resource, Namespace, Name                  string
	Code                                       int
	Second                                     int // since the beginning of the log
	Calls                                      []recordedCall
	Annotations                                map[string]string
	Object                                     string // requestObject
}

// A recordedCall is a call of a mutating webhook in an event.
type recordedCall struct {
	Round      int
	Hook       string // name of the webhook; its configuration is "c"
	Mutated    bool
	Patch      string
	FailedOpen bool
	Index      int
}

var beginning = time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)

func or(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// line encodes the event as a line of a log.
func (e event) line() string {
	annotations := map[string]string{"authorization.k8s.io/decision": "allow", "authorization.k8s.io/reason": ""}
	for key, value := range e.Annotations {
		annotations[key] = value
	}
	for i, c := range e.Calls {
		place := fmt.Sprintf("round_%d_index_%d", c.Round, i+c.Index)
		annotations[mutationPrefix+place] = fmt.Sprintf(`{"configuration":"c","webhook":%q,"mutated":%t}`, c.Hook, c.Mutated)
		if c.Patch != "" {
			annotations[patchPrefix+place] = fmt.Sprintf(`{"configuration":"c","webhook":%q,"patch":%s,"patchType":"JSONPatch"}`, c.Hook, c.Patch)
		}
		if c.FailedOpen {
			annotations[openMutationPrefix+place] = c.Hook
		}
	}
	if e.Code == 0 {
		e.Code = 200
	}
	resource, namespace, name := or(e.Resource, "configmaps"), or(e.Namespace, "shop"), or(e.Name, "one")
	at := beginning.Add(time.Duration(e.Second) * time.Second)
	type m = map[string]any
	doc := m{
		"kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": or(e.Level, "Request"), "auditID": e.ID, "stage": or(e.Stage, "ResponseComplete"),
		"requestURI": or(e.URI, "/api/v1/namespaces/"+namespace+"/"+resource+"/"+name), "verb": or(e.Verb, "update"),
		"user": m{"username": or(e.User, "jane"), "groups": []string{"system:authenticated"}}, "sourceIPs": []string{"192.0.2.1"}, "userAgent": "kubectl/v1.36.3",
		"objectRef":                m{"resource": resource, "namespace": namespace, "name": name, "apiVersion": "v1"},
		"responseStatus":           m{"metadata": m{}, "code": e.Code, "message": e.Message},
		"requestReceivedTimestamp": at.Format("2006-01-02T15:04:05.000000Z"), "stageTimestamp": at.Add(5 * time.Millisecond).Format("2006-01-02T15:04:05.000000Z"),
		"annotations": annotations,
	}
	if e.Object != "" {
		doc["requestObject"] = json.RawMessage(e.Object)
	}
	text, err := json.Marshal(doc)
	if err != nil {
		panic(err)
	}
	return string(text) + "\n"
}

func noProgress(int64, int64, int) {}

func defaults() Options { return Options{Top: 50, Slow: time.Second, Again: 5} }

// textSource returns a source that reads text.
func textSource(name string, text io.Reader) Source {
	return Source{Name: name, open: func() (io.ReadCloser, error) { return io.NopCloser(text), nil }}
}

// read runs an audit of the text of a log and returns the report.
func read(t *testing.T, o Options, log string) *Report {
	t.Helper()
	r, err := Run(t.Context(), []Source{textSource("log", strings.NewReader(log))}, o, noProgress)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// rulesOf returns a text for each finding of a report: the rule and the number of requests.
func rulesOf(r *Report) (all []string) {
	for _, f := range r.Findings {
		all = append(all, fmt.Sprintf("%s %d", f.Rule, f.Requests))
	}
	return all
}
