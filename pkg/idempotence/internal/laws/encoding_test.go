// SPDX-License-Identifier: Apache-2.0

package laws

import (
	"testing"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/session"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// TestWithoutEncoding compares two results for a custom resource. Quantities in another form are no difference. Zero
// values are none if the webhook is known to write several of them, except in containers.
func TestWithoutEncoding(t *testing.T) {
	for name, tc := range map[string]struct {
		from, to string
		encodes  bool
		want     int
	}{
		"a zero value of an encoder":    {`{"spec":{"host":"a"}}`, `{"spec":{"host":"a","port":0}}`, true, 0},
		"a zero value":                  {`{"spec":{"host":"a"}}`, `{"spec":{"host":"a","port":0}}`, false, 1},
		"a label without a value":       {`{"metadata":{"name":"a"}}`, `{"metadata":{"name":"a","labels":{"b":""}}}`, true, 1},
		"another value":                 {`{"spec":{"host":"a"}}`, `{"spec":{"host":"a","port":1}}`, true, 1},
		"a zero value that is replaced": {`{"spec":{"port":0}}`, `{"spec":{"port":1}}`, true, 1},
		"a divisor":                     {`{"env":[{"name":"A","ref":{}}]}`, `{"env":[{"name":"A","ref":{"divisor":"0"}}]}`, false, 0},
		"a quantity":                    {`{"spec":{"limit":"+.548"}}`, `{"spec":{"limit":"548m"}}`, false, 0},
		"an element with a zero value":  {`{"subnets":[{"zone":"a"}]}`, `{"subnets":[{"zone":"a","public":false}]}`, true, 0},
		"another element":               {`{"subnets":[{"zone":"a"}]}`, `{"subnets":[{"zone":"b","public":false}]}`, true, 2},
		"another text":                  {`{"hosts":["a"]}`, `{"hosts":["b"]}`, true, 2},
		"a setting of a container":      {`{"containers":[{"name":"a"}]}`, `{"containers":[{"name":"a","stdin":false}]}`, true, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := &session.Session{Kind: &objects.Kind{}, Behaviour: &session.Behaviour{}}
			if tc.encodes {
				s.Behaviour.Zeros = map[string]bool{"public": true, "port": true}
			}
			got := NewTrial(s, Options{}).withoutEncoding(tree.Changes(parsed(t, tc.from), parsed(t, tc.to)))
			if len(got) != tc.want {
				t.Errorf("%d changes: %v", len(got), got)
			}
		})
	}
}
