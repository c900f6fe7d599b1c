// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/admitkit/admitkit/pkg/chain"
)

// A testCase is one request for both engines.
type testCase struct {
	seed    uint64
	kind    string // name of the resource
	scripts map[string]any
	request chain.Request
}

// on reports whether any of these slots is enabled.
func (c testCase) on(names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return c.scripts["script/"+name] != nil })
}

func (c testCase) String() string {
	return fmt.Sprintf("seed %d: %s %s dryRun=%t\nobject %s\nold    %s", c.seed, c.request.Operation, c.kind, c.request.DryRun, c.request.Object, c.request.OldObject)
}

// Namespaces of the requests. The second has the label team=special.
const plain, special = "diff-plain", "diff-special"

// spoil changes a widget so that its schema, or a rule in the schema, rejects the widget.
func spoil(r *rand.Rand, object map[string]any) {
	spec := object["spec"].(map[string]any)
	switch r.IntN(3) {
	case 0:
		spec["color"] = "purple"
	case 1:
		spec["color"], spec["size"] = "red", 9
	default:
		spec["size"] = "large" // not a number
	}
}

// newCase returns the case for a seed.
func newCase(seed uint64) testCase {
	r := rand.New(rand.NewPCG(seed, 1))
	if r.IntN(10) == 0 {
		return newConnect(seed, r)
	}
	k := kinds[r.IntN(len(kinds))]
	c := testCase{seed: seed, kind: k.name}
	c.request = chain.Request{
		Operation: []admissionv1.Operation{admissionv1.Create, admissionv1.Create, admissionv1.Update, admissionv1.Delete}[r.IntN(4)],
		Resource:  k.gvr, DryRun: r.IntN(2) == 0, User: someUser(r),
	}
	if r.IntN(3) == 0 {
		c.request.FieldManager = "somebody"
	}
	name := fmt.Sprintf("diff-%d", seed)
	metadata := map[string]any{"name": name}
	if !k.global {
		c.request.Namespace = []string{plain, special}[r.IntN(2)]
		metadata["namespace"] = c.request.Namespace
	}
	labels, annotations := script(r, c.request.Operation)
	c.scripts = annotations
	object := k.object(r)
	metadata["labels"], metadata["annotations"] = labels, annotations
	object["metadata"] = metadata
	switch c.request.Operation {
	case admissionv1.Create:
		if r.IntN(4) == 0 {
			delete(metadata, "name")
			metadata["generateName"] = name + "-"
		}
		if r.IntN(8) == 0 {
			object["unknown"] = "field" // the API server warns about it
		}
		if r.IntN(12) == 0 {
			labels["invalid"] = "not valid!"
		}
		if k.name == "widgets" && r.IntN(5) == 0 {
			spoil(r, object)
		}
		c.request.Object = encode(object)
	case admissionv1.Update:
		c.request.OldObject = encode(object)
		metadata["labels"] = maps.Clone(labels)
		metadata["labels"].(map[string]any)["new"] = "yes"
		if k.edit != nil && r.IntN(2) == 0 {
			k.edit(object)
		}
		if r.IntN(3) == 0 { // enable this slot only in the old object
			delete(metadata["labels"].(map[string]any), slices.Sorted(maps.Keys(labels))[0])
		}
		if k.name == "widgets" && r.IntN(5) == 0 {
			spoil(r, object)
		}
		c.request.Object = encode(object)
	case admissionv1.Delete:
		c.request.Name = name
		c.request.OldObject = encode(object)
	}
	return c
}

// newConnect returns an exec into a Pod that does not exist.
func newConnect(seed uint64, r *rand.Rand) testCase {
	all := slices.Sorted(maps.Keys(responses))
	all = append(all, slices.Sorted(maps.Keys(rawAnswers))...)
	slot, what := []string{"mx", "vx"}[r.IntN(2)], all[r.IntN(len(all))]
	if r.IntN(3) == 0 {
		slot, what = "mx", "stdin"
	}
	object := map[string]any{"apiVersion": "v1", "kind": "PodExecOptions", "container": slot + "-" + what, "command": []any{"ls"}, "stdout": true}
	c := testCase{seed: seed, kind: "pods/exec", scripts: map[string]any{"script/" + slot: what}}
	c.request = chain.Request{
		Operation: admissionv1.Connect, Resource: kinds[0].gvr, SubResource: "exec", Namespace: special, Name: fmt.Sprintf("diff-%d", seed), User: someUser(r),
		Object: encode(object),
	}
	return c
}

func someUser(r *rand.Rand) authenticationv1.UserInfo {
	switch r.IntN(3) {
	case 0:
		return authenticationv1.UserInfo{Username: "jane", UID: "7", Groups: []string{"system:masters", "system:authenticated"}}
	case 1:
		return authenticationv1.UserInfo{
			Username: "joe", Groups: []string{"system:masters", "system:authenticated"},
			Extra: map[string]authenticationv1.ExtraValue{"team": {"a", "b"}, "zone": {"z"}},
		}
	}
	return authenticationv1.UserInfo{}
}

// Scripts that allow a request. The scripts in harmless return no patch. They are for validating webhooks and for
// DELETE, for which a webhook cannot return a patch.
var (
	well     = []string{"annotate", "count", "noop", "same", "nothing", "unknown", "switchon", "warn", "audit", "auditcount", "emptymap", "warnannotate", "failagain", ""}
	harmless = []string{"nothing", "warn", "audit", "allowstatus", ""}
)

// script enables some slots and chooses their actions, mostly successful ones.
func script(r *rand.Rand, operation admissionv1.Operation) (labels, annotations map[string]any) {
	every := append(slices.Sorted(maps.Keys(responses)), slices.Sorted(maps.Keys(rawAnswers))...)
	labels, annotations = map[string]any{}, map[string]any{"by": "differential"}
	if r.IntN(3) != 0 {
		annotations["asked"] = []string{"x", "y"}[r.IntN(2)]
	}
	for _, s := range slots {
		if s.unselected || r.IntN(3) != 0 {
			continue
		}
		labels[s.name] = "on"
		from := well
		if !s.mutating || operation == admissionv1.Delete {
			from = harmless
		}
		if r.IntN(8) == 0 {
			from = every
		}
		annotations["script/"+s.name] = from[r.IntN(len(from))]
	}
	if len(labels) == 0 {
		labels["none"] = "on"
	}
	return labels, annotations
}

func encode(object any) []byte {
	b, err := json.Marshal(object)
	if err != nil {
		panic(err)
	}
	return b
}
