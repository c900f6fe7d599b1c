// SPDX-License-Identifier: Apache-2.0

package laws

import (
	"testing"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/session"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// givenContainers has samples with the containers of a Pod in a template.
type givenContainers struct{ Inputs }

func (givenContainers) GivenIn(p tree.Path) bool { return p.Last() == "containers" }

func TestOmitted(t *testing.T) {
	const missing = "spec.jobs[0].template.spec.containers: Required value"
	const result = `{"spec":{"jobs":[{"name":"a","template":{"spec":{"containers":null,"restartPolicy":"Never"}}}]}}`
	for name, tc := range map[string]struct {
		sent, problem string
		want          bool
	}{
		"a template without a Pod":            {`{"spec":{"jobs":[{"name":"a","template":{}}]}}`, missing, true},
		"an element that the webhook adds":    {`{"spec":{"jobs":[]}}`, missing, false},
		"a field that the webhook removes":    {`{"spec":{"jobs":[{"name":"a","template":{"spec":{"containers":[{"name":"c"}]}}}]}}`, missing, false},
		"a field that no sample has":          {`{"spec":{"jobs":[{"name":"a","template":{}}]}}`, "spec.jobs[0].template.spec.volumes: Required value", false},
		"a value that the API server rejects": {`{"spec":{"jobs":[{"name":"a","template":{}}]}}`, `spec.jobs[0].template.spec.containers: Invalid value: "null"`, false},
	} {
		t.Run(name, func(t *testing.T) {
			call := &session.Answer{Allowed: true, After: &objects.Object{Doc: parsed(t, result)}}
			call.Exchange.Object = []byte(tc.sent)
			trial := &Trial{Options: Options{Inputs: givenContainers{}}}
			if got := trial.omitted(tc.problem, &session.Outcome{Answer: call, Calls: []*session.Answer{call}}); got != tc.want {
				t.Errorf("got %t", got)
			}
		})
	}
}
