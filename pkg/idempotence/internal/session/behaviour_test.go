// SPDX-License-Identifier: Apache-2.0

package session

import "testing"

func TestBehaviourCountsKinds(t *testing.T) {
	b := newBehaviour()
	for _, patch := range []string{
		`[{"op":"add","path":"/metadata/labels/a","value":"1"},{"op":"add","path":"/spec/containers/0/env","value":[]}]`,
		`[{"op":"add","path":"/spec/containers/2/env","value":[]},{"op":"add","path":"/spec/containers/0/env","value":[]},{"op":"add","path":"/metadata/labels/b","value":"1"}]`,
		`[{"op":"remove","path":"/metadata/labels/a"}]`,
	} {
		b.note(&Query{}, &Answer{Allowed: true, Patch: []byte(patch)})
	}
	for _, message := range []string{`port 80 of "a" is taken`, `port 8080 of "b" is taken`, "no owner"} {
		b.note(&Query{}, &Answer{Message: message})
	}
	b.note(&Query{}, &Answer{Fault: "HTTP 500"})
	if b.Patches() != 2 || b.Denials() != 2 || b.Seen() != 4 {
		t.Errorf("%d kinds of patches, %d kinds of denials", b.Patches(), b.Denials())
	}
}
