// SPDX-License-Identifier: Apache-2.0

package laws

import (
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/session"
)

// TestPatchOperations tests whether a patch adds an element again, and whether it only adds values.
func TestPatchOperations(t *testing.T) {
	const sent = `{"spec":{"env":[{"name":"a"},{"name":"b"},{"value":"1"}]}}`
	for name, tc := range map[string]struct {
		patch           string
		again, onlyAdds bool
	}{
		"an element again":        {`[{"op":"add","path":"/spec/env/-","value":{"name":"a"}}]`, true, true},
		"another element":         {`[{"op":"add","path":"/spec/env/-","value":{"name":"c"}}]`, false, true},
		"a name":                  {`[{"op":"add","path":"/spec/env/2/name","value":"a"}]`, false, true},
		"another name":            {`[{"op":"add","path":"/spec/env/1/name","value":"a"}]`, false, false},
		"the list, with one more": {`[{"op":"add","path":"/spec/env","value":[{"name":"a"},{"name":"b"},{"value":"1"},{"name":"b"}]}]`, true, false},
		"the list with a name":    {`[{"op":"replace","path":"/spec/env","value":[{"name":"a"},{"name":"b"},{"name":"b"}]}]`, false, false},
		"a map, and into it":      {`[{"op":"add","path":"/spec/tls","value":{}},{"op":"add","path":"/spec/tls/mode","value":"x"}]`, false, true},
		"a member twice":          {`[{"op":"add","path":"/spec/tls","value":{}},{"op":"add","path":"/spec/tls","value":"x"}]`, false, false},
		"a removal":               {`[{"op":"remove","path":"/spec/env/0"}]`, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			operations, err := jsonpatch.DecodePatch([]byte(tc.patch))
			if err != nil {
				t.Fatal(err)
			}
			result, err := operations.Apply([]byte(sent))
			if err != nil {
				t.Fatal(err)
			}
			answer := &session.Answer{Patch: []byte(tc.patch), Result: result, Exchange: session.Exchange{Object: []byte(sent)}}
			out := &session.Outcome{Answer: answer, Calls: []*session.Answer{answer}}
			if path, again := addsAgain(out); again != tc.again {
				t.Errorf("adds again: %v %s", again, path)
			}
			if got := onlyAdds(out); got != tc.onlyAdds {
				t.Errorf("only adds: %v", got)
			}
		})
	}
}
