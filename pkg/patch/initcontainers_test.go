// SPDX-License-Identifier: Apache-2.0

package patch_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/admitkit/admitkit/pkg/patch"
)

// twoInits is a Pod whose first init container has a field that corev1.Container does not know.
const twoInits = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web"},"spec":{"containers":[{"name":"app","image":"app:1"}],"initContainers":[` +
	`{"name":"setup","image":"setup:1","newField":true},{"name":"fetch","image":"fetch:1"}]}}`

// initRows are edits of a list of init containers and the resulting list. The field newField must always stay in the
// container setup.
var initRows = []struct {
	reason string
	edit   func(list *[]any, first any) // first is the container to prepend
	want   string
	// controllerRuntime is the result of the same handler in controller-runtime v0.24 and v0.25.
	controllerRuntime string
}{
	{
		"prepend", func(list *[]any, first any) { *list = slices.Insert(*list, 0, first) },
		"proxy setup+newField fetch", "proxy+newField setup fetch",
	},
	{
		"remove the first", func(list *[]any, _ any) { *list = (*list)[1:] },
		"fetch", "fetch+newField",
	},
	{
		"remove the second", func(list *[]any, _ any) { *list = (*list)[:1] },
		"setup+newField", "setup+newField",
	},
	{
		"swap", func(list *[]any, _ any) { slices.Reverse(*list) },
		"fetch setup+newField", "fetch+newField setup",
	},
	{
		"prepend one and remove the second", func(list *[]any, first any) { *list = []any{first, (*list)[0]} },
		"proxy setup+newField", "proxy+newField setup",
	},
}

// edited runs an edit on a list with elements of any type, and returns the edited list.
func edited[T any](list []T, first T, edit func(list *[]any, first any)) []T {
	var boxed []any
	for _, elem := range list {
		boxed = append(boxed, elem)
	}
	edit(&boxed, first)
	list = nil
	for _, elem := range boxed {
		list = append(list, elem.(T))
	}
	return list
}

// initsOf returns the names of the init containers of a Pod, and appends "+newField" to those that have this field.
func initsOf(t *testing.T, pod []byte) string {
	t.Helper()
	var have struct {
		Spec struct {
			InitContainers []struct {
				Name     string `json:"name"`
				NewField bool   `json:"newField"`
			} `json:"initContainers"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(pod, &have); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range have.Spec.InitContainers {
		if c.NewField {
			c.Name += "+newField"
		}
		names = append(names, c.Name)
	}
	return strings.Join(names, " ")
}

// TestAnUnknownFieldStaysOnItsInitContainer edits lists in which other libraries move a field from one container to
// another. The patch of Diff must leave the field in its container.
func TestAnUnknownFieldStaysOnItsInitContainer(t *testing.T) {
	type container struct {
		Name string `json:"name"`
	}
	type projection struct {
		Spec struct {
			InitContainers []container `json:"initContainers"`
		} `json:"spec"`
	}
	for _, row := range initRows {
		pod := decode[corev1.Pod](t, twoInits)
		pod.Spec.InitContainers = edited(pod.Spec.InitContainers, corev1.Container{Name: "proxy"}, row.edit)
		few := decode[projection](t, twoInits)
		few.Spec.InitContainers = edited(few.Spec.InitContainers, container{Name: "proxy"}, row.edit)
		object := decode[map[string]any](t, twoInits)
		spec := object["spec"].(map[string]any)
		spec["initContainers"] = edited(spec["initContainers"].([]any), any(map[string]any{"name": "proxy"}), row.edit)
		for kind, after := range map[string]any{"typed": &pod, "projection": &few, "unstructured": object} {
			p, err := patch.Diff([]byte(twoInits), after)
			if err != nil {
				t.Fatal(err)
			}
			result, err := patch.Apply([]byte(twoInits), p)
			if err != nil {
				t.Fatal(err)
			}
			if got := initsOf(t, result); got != row.want {
				t.Errorf("%s, %s: got %s, want %s; by %s", row.reason, kind, got, row.want, p.AppendJSON(nil))
			}
		}
	}
}

// podEdit is a controller-runtime handler.
type podEdit func(*corev1.Pod)

func (e podEdit) Default(_ context.Context, pod *corev1.Pod) error {
	e(pod)
	return nil
}

// TestControllerRuntimeMovesTheField runs the same handlers in controller-runtime, which moves the field to another
// container. If the test fails because controller-runtime has fixed this bug, update docs/patches.md, which describes
// it.
func TestControllerRuntimeMovesTheField(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for _, row := range initRows {
		hook := admission.WithDefaulter[*corev1.Pod](scheme, podEdit(func(pod *corev1.Pod) {
			pod.Spec.InitContainers = edited(pod.Spec.InitContainers, corev1.Container{Name: "proxy"}, row.edit)
		}))
		response := hook.Handle(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
			UID: "1", Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: []byte(twoInits)},
		}})
		text, err := json.Marshal(response.Patches)
		if err != nil {
			t.Fatal(err)
		}
		p, err := patch.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		result, err := patch.Apply([]byte(twoInits), p)
		if err != nil {
			t.Fatal(err)
		}
		if got := initsOf(t, result); got != row.controllerRuntime {
			t.Errorf("%s: got %s, want %s; by %s", row.reason, got, row.controllerRuntime, text)
		}
	}
}
