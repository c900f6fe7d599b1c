// SPDX-License-Identifier: Apache-2.0

package session

import (
	"testing"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

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
	for _, warning := range []string{"image:1 is old", "image:2 is old", "no limits"} {
		b.note(&Query{}, &Answer{Allowed: true, Warnings: []string{warning, warning}})
	}
	b.note(&Query{}, &Answer{Fault: "HTTP 500", Warnings: []string{"unknown"}})
	if b.Patches() != 2 || b.Denials() != 2 || b.Warnings() != 2 || b.Seen() != 6 {
		t.Errorf("%d kinds of patches, %d of denials, %d of warnings", b.Patches(), b.Denials(), b.Warnings())
	}
}

// TestBehaviourRecordsChanges requires that a patch is recorded with the containers that it changes and the zero values
// that it adds.
func TestBehaviourRecordsChanges(t *testing.T) {
	b := newBehaviour()
	note := func(operation admissionv1.Operation, before, after string) {
		x, err := tree.Decode([]byte(before))
		y, other := tree.Decode([]byte(after))
		if err != nil || other != nil {
			t.Fatal(err, other)
		}
		b.note(&Query{Operation: operation, Object: &objects.Object{Doc: x}}, &Answer{Allowed: true, Patch: []byte("[]"), After: &objects.Object{Doc: y}})
	}
	note(admissionv1.Create, `{"spec":{"initContainers":[{"name":"a"}],"host":"h"}}`, `{"spec":{"initContainers":[{"name":"a"},{"name":"b"}],"host":"h","port":0}}`)
	if b.Updates || b.Inside["initContainers"] || b.WritesZeros() {
		t.Errorf("updates %t, inside %v, zeros %v", b.Updates, b.Inside, b.Zeros)
	}
	note(admissionv1.Update, `{"spec":{"initContainers":[{"name":"a"}]}}`, `{"spec":{"initContainers":[{"name":"a","image":"x"}],"host":""}}`)
	if !b.Updates || !b.Inside["initContainers"] || !b.WritesZeros() {
		t.Errorf("updates %t, inside %v, zeros %v", b.Updates, b.Inside, b.Zeros)
	}
}
