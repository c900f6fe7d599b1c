// SPDX-License-Identifier: Apache-2.0

package patch_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"

	"github.com/admitkit/admitkit/pkg/patch"
)

// podRow is one edit of a Pod and the exact patch that it must give.
type podRow struct {
	reason string
	raw    string
	edit   func(*corev1.Pod)
	want   string
}

var podRows = []podRow{
	{
		"an untouched object gives no patch, whatever its spelling",
		`{"metadata":{"creationTimestamp":null,"future":1},"spec":{"containers":[{"name":"a","resources":{"limits":{"cpu":"1000m"}}}]}}`,
		func(*corev1.Pod) {}, `[]`,
	},
	{
		"another spelling of a quantity is not a change",
		`{"spec":{"containers":[{"name":"a","resources":{"limits":{"cpu":"1000m"}}}]}}`,
		func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Limits["cpu"] = resource.MustParse("1") }, `[]`,
	},
	{
		"a quantity in another unit is not a change",
		`{"spec":{"containers":[{"name":"a","resources":{"limits":{"memory":"1Gi"}}}]}}`,
		func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Limits["memory"] = *resource.NewQuantity(1<<30, resource.DecimalSI)
		}, `[]`,
	},
	{
		"nil and empty are equal with omitempty",
		`{"metadata":{"labels":{}},"spec":{"containers":[]}}`,
		func(p *corev1.Pod) {
			p.Labels = nil
			p.Spec.Containers = nil
			p.Spec.Tolerations = []corev1.Toleration{}
		}, `[]`,
	},
	{
		"a first label creates the map",
		`{"metadata":{"name":"x"},"spec":{"containers":null}}`,
		func(p *corev1.Pod) { p.Labels = map[string]string{"a/b~c": "d"} },
		`[{"op":"add","path":"/metadata/labels","value":{"a/b~c":"d"}}]`,
	},
	{
		"a null parent is replaced",
		`{"metadata":{"labels":null},"spec":{"containers":null}}`,
		func(p *corev1.Pod) { p.Labels = map[string]string{"a": "b"} },
		`[{"op":"replace","path":"/metadata/labels","value":{"a":"b"}}]`,
	},
	{
		"an empty map keeps its place",
		`{"metadata":{"labels":{}},"spec":{"containers":null}}`,
		func(p *corev1.Pod) { p.Labels = map[string]string{"a/b~c": "d"} },
		`[{"op":"add","path":"/metadata/labels/a~1b~0c","value":"d"}]`,
	},
	{
		"a missing parent is written as a whole",
		`{"metadata":{"name":"x"}}`,
		func(p *corev1.Pod) { p.Spec.NodeName = "n" },
		`[{"op":"add","path":"/spec","value":{"containers":null,"nodeName":"n"}}]`,
	},
	{
		"a prepended container leaves the others where they are",
		`{"spec":{"containers":[{"name":"a","future":1},{"name":"b","future":2}]}}`,
		func(p *corev1.Pod) {
			p.Spec.Containers = slices.Insert(p.Spec.Containers, 0, corev1.Container{Name: "s"})
		},
		`[{"op":"add","path":"/spec/containers/0","value":{"name":"s","resources":{}}}]`,
	},
	{
		"a swap is one move",
		`{"spec":{"containers":[{"name":"a","future":1},{"name":"b","future":2}]}}`,
		func(p *corev1.Pod) { slices.Reverse(p.Spec.Containers) },
		`[{"op":"move","from":"/spec/containers/1","path":"/spec/containers/0"}]`,
	},
	{
		"an element taken out and another edited",
		`{"spec":{"containers":[{"name":"a"},{"name":"b","future":2},{"name":"c"}]}}`,
		func(p *corev1.Pod) { p.Spec.Containers = p.Spec.Containers[1:]; p.Spec.Containers[0].Image = "i" },
		`[{"op":"remove","path":"/spec/containers/0"},{"op":"add","path":"/spec/containers/0/image","value":"i"}]`,
	},
	{
		"an element of a list without keys, edited in place",
		`{"spec":{"containers":null,"tolerations":[{"key":"a","operator":"Exists","future":1},{"key":"b","operator":"Exists"}]}}`,
		func(p *corev1.Pod) { p.Spec.Tolerations[0].Effect = "NoExecute" },
		`[{"op":"add","path":"/spec/tolerations/0/effect","value":"NoExecute"}]`,
	},
	{
		"one gone and one edited: the one that shares more members is the edited one",
		`{"spec":{"containers":null,"tolerations":[{"key":"a","operator":"Exists","effect":"NoExecute","future":1},` +
			`{"key":"b","operator":"Exists","effect":"NoExecute","future":2}]}}`,
		func(p *corev1.Pod) {
			p.Spec.Tolerations = p.Spec.Tolerations[1:]
			p.Spec.Tolerations[0].TolerationSeconds = new(int64)
		},
		`[{"op":"remove","path":"/spec/tolerations/0"},{"op":"add","path":"/spec/tolerations/0/tolerationSeconds","value":0}]`,
	},
	{
		"an element of a list without keys, moved and edited",
		`{"spec":{"containers":null,"tolerations":[{"key":"a","operator":"Exists","future":1},{"key":"b","operator":"Exists","future":2},{"key":"c","value":"d"}]}}`,
		func(p *corev1.Pod) {
			slices.Reverse(p.Spec.Tolerations[:2])
			p.Spec.Tolerations[0].Effect = "NoExecute"
		},
		`[{"op":"move","from":"/spec/tolerations/1","path":"/spec/tolerations/0"},{"op":"add","path":"/spec/tolerations/0/effect","value":"NoExecute"}]`,
	},
	{
		"port 53 twice: the merge key is not unique, but the other fields differ",
		`{"spec":{"containers":[{"name":"a","ports":[{"containerPort":53,"protocol":"TCP"},{"containerPort":53,"protocol":"UDP"}]}]}}`,
		func(p *corev1.Pod) { p.Spec.Containers[0].Ports = p.Spec.Containers[0].Ports[1:] },
		`[{"op":"remove","path":"/spec/containers/0/ports/0"}]`,
	},
	{
		"arguments: one inserted in the middle",
		`{"spec":{"containers":[{"name":"a","args":["x","y","z"]}]}}`,
		func(p *corev1.Pod) { p.Spec.Containers[0].Args = []string{"x", "<n>", "y", "z"} },
		`[{"op":"add","path":"/spec/containers/0/args/1","value":"<n>"}]`,
	},
	{
		"arguments: two alike, the first gone, and one added",
		`{"spec":{"containers":[{"name":"a","args":["-v","x","-v","z"]}]}}`,
		func(p *corev1.Pod) { p.Spec.Containers[0].Args = []string{"x", "-v", "y", "z"} },
		`[{"op":"remove","path":"/spec/containers/0/args/0"},{"op":"add","path":"/spec/containers/0/args/2","value":"y"}]`,
	},
	{
		"a pointer that is set to nil is removed",
		`{"spec":{"containers":null,"securityContext":{"runAsUser":1,"future":1}}}`,
		func(p *corev1.Pod) { p.Spec.SecurityContext = nil },
		`[{"op":"remove","path":"/spec/securityContext"}]`,
	},
	{
		"a last label taken out removes the map",
		`{"metadata":{"labels":{"a":"b"}},"spec":{"containers":null}}`,
		func(p *corev1.Pod) { delete(p.Labels, "a") },
		`[{"op":"remove","path":"/metadata/labels"}]`,
	},
}

func TestDiffOfPods(t *testing.T) {
	for _, row := range podRows {
		t.Run(row.reason, func(t *testing.T) {
			after := decode[corev1.Pod](t, row.raw)
			row.edit(&after)
			p, err := patch.Diff([]byte(row.raw), &after)
			if err != nil {
				t.Fatal(err)
			}
			if got := string(p.AppendJSON(nil)); got != row.want {
				t.Errorf("patch\n got %s\nwant %s", got, row.want)
			}
			checkApplied(t, row.raw, p, after)
		})
	}
}

// checkApplied applies the patch as the API server does and compares the typed result.
func checkApplied[T any](t *testing.T, raw string, p patch.Patch, want T) {
	t.Helper()
	decoded, err := jsonpatch.DecodePatch(p.AppendJSON(nil))
	if err != nil {
		t.Fatal(err)
	}
	applied, err := decoded.Apply([]byte(raw))
	if err != nil {
		t.Fatalf("%s does not apply: %v", p.AppendJSON(nil), err)
	}
	got := decode[T](t, string(applied))
	if !equality.Semantic.DeepEqual(got, want) {
		t.Errorf("result\n got %+v\nwant %+v", got, want)
	}
}

func decode[T any](t *testing.T, raw string) T {
	t.Helper()
	var v T
	if err := kjson.UnmarshalCaseSensitivePreserveInts([]byte(raw), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestDiffOfEmptyValuesThatMatter(t *testing.T) {
	type element struct {
		A int `json:"a"`
	}
	type values struct {
		Selector *metav1.LabelSelector `json:"selector"`
		Optional *[]string             `json:"optional,omitempty"`
		List     []string              `json:"list"`
		ByName   map[string]element    `json:"byName,omitempty"`
		Lists    map[string][]string   `json:"lists,omitempty"`
		Free     map[string]any        `json:"free,omitempty"`
	}
	for _, row := range []struct {
		reason, raw, want string
		edit              func(*values)
	}{
		{
			"a selector of everything is not a selector of nothing",
			`{"selector":{}}`, `[{"op":"replace","path":"/selector","value":null}]`,
			func(v *values) { v.Selector = nil },
		},
		{
			"a pointer to an empty list is not nil",
			`{"optional":[]}`, `[{"op":"remove","path":"/optional"}]`,
			func(v *values) { v.Optional = nil },
		},
		{
			"a pointer to a nil list encodes null, which decodes to a nil pointer",
			`{"optional":[]}`, `[{"op":"replace","path":"/optional","value":null}]`,
			func(v *values) { v.Optional = new([]string) },
		},
		{
			"a nil list equals an empty one",
			`{"list":[]}`, `[]`,
			func(v *values) { v.List = nil },
		},
		{
			"an entry is removed as a whole, even if its value is a struct",
			`{"byName":{"x":{"a":1,"future":1},"y":{"a":2}}}`, `[{"op":"remove","path":"/byName/x"}]`,
			func(v *values) { delete(v.ByName, "x") },
		},
		{
			"an entry that is null is an entry",
			`{"lists":{"x":null,"y":["z"]}}`, `[{"op":"remove","path":"/lists/x"}]`,
			func(v *values) { delete(v.Lists, "x") },
		},
		{
			"where no type says otherwise, null is not empty",
			`{"free":{"x":{},"y":[]}}`, `[{"op":"replace","path":"/free/x","value":null},{"op":"replace","path":"/free/y","value":null}]`,
			func(v *values) { v.Free = map[string]any{"x": nil, "y": nil} },
		},
	} {
		after := decode[values](t, row.raw)
		row.edit(&after)
		p, err := patch.Diff([]byte(row.raw), after)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(p.AppendJSON(nil)); got != row.want {
			t.Errorf("%s: got %s, want %s", row.reason, got, row.want)
		}
	}
}

type omitzero struct {
	Inner struct {
		Known int `json:"known,omitempty"`
	} `json:"inner,omitzero"`
	At metav1.Time `json:"at,omitzero"`
}

func TestDiffOfStructsLeftOutWhenZero(t *testing.T) {
	for _, row := range []struct {
		reason, raw, want string
		edit              func(*omitzero)
	}{
		{
			"a struct that is set to zero keeps its unknown members",
			`{"inner":{"known":1,"future":2}}`, `[{"op":"remove","path":"/inner/known"}]`,
			func(o *omitzero) { o.Inner.Known = 0 },
		},
		{
			"a zero struct with unknown members keeps them when it is set",
			`{"inner":{"future":2}}`, `[{"op":"add","path":"/inner/known","value":3}]`,
			func(o *omitzero) { o.Inner.Known = 3 },
		},
		{
			"the same instant in another zone is not a change",
			`{"at":"2024-01-01T00:00:00Z"}`, `[]`,
			func(o *omitzero) { o.At = metav1.NewTime(o.At.In(time.FixedZone("x", 3600))) },
		},
	} {
		after := decode[omitzero](t, row.raw)
		row.edit(&after)
		p, err := patch.Diff([]byte(row.raw), after)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(p.AppendJSON(nil)); got != row.want {
			t.Errorf("%s: got %s, want %s", row.reason, got, row.want)
		}
	}
}

func TestDiffRejectsAmbiguousChanges(t *testing.T) {
	two := map[string]any{"a": 2}
	_, err := patch.Diff([]byte(`{"x":{"a":2,"a":1}}`), map[string]any{"x": two})
	var at *patch.Error
	if !errors.As(err, &at) || !errors.Is(err, patch.ErrDuplicateName) || at.Pointer != "/x/a" {
		t.Errorf("duplicate names: got %v", err)
	}
	if _, err := patch.Diff([]byte(`{"a":1`), two); err == nil {
		t.Error("truncated document: no error")
	}
	if _, err := patch.Diff([]byte(`[]`), two); err == nil {
		t.Error("a list is not an object: no error")
	}
	if p, err := patch.Diff([]byte(`{"a":1}`), map[string]any(nil)); err == nil {
		t.Errorf("a nil map: got %s, which no applier can carry out", p.AppendJSON(nil))
	}
	if _, err := patch.Diff([]byte(`{}`), nil); err == nil {
		t.Error("no value: no error")
	}
	if _, err := patch.Diff([]byte(`{}`), map[string]any{"f": func() {}}); err == nil {
		t.Error("a value that does not encode: no error")
	}
}

// images is a Go type that has only the images of containers, so its list elements have no merge key.
type images struct {
	Containers []struct {
		Image string `json:"image"`
	} `json:"containers"`
}

func TestDiffOfProjections(t *testing.T) {
	for _, row := range []struct {
		reason, raw, want string
		edit              func(*images)
	}{
		{
			"an edit in place touches nothing else",
			`{"containers":[{"name":"a","image":"x","command":["run"]}]}`,
			`[{"op":"replace","path":"/containers/0/image","value":"y"}]`,
			func(i *images) { i.Containers[0].Image = "y" },
		},
		{
			"unknown members stay, even false and null",
			`{"containers":[{"image":"x","stdin":false},{"image":"z","stdin":null}]}`,
			`[{"op":"replace","path":"/containers/0/image","value":"y"},{"op":"replace","path":"/containers/1/image","value":"y"}]`,
			func(i *images) { i.Containers[0].Image, i.Containers[1].Image = "y", "y" },
		},
		{
			"if the type knows all members, an element without common members is new",
			`{"containers":[{"image":"x"},{"image":"z"}]}`,
			`[{"op":"remove","path":"/containers/0"},{"op":"add","path":"/containers/0","value":{"image":"y"}}]`,
			func(i *images) { i.Containers[0].Image = "y" },
		},
		{
			"so do many edits in place",
			`{"containers":[{"name":"a","image":"x"},{"name":"b","image":"y"},{"name":"c","image":"x"}]}`,
			`[{"op":"replace","path":"/containers/0/image","value":"m/x"},{"op":"replace","path":"/containers/1/image","value":"m/y"},{"op":"replace","path":"/containers/2/image","value":"m/x"}]`,
			func(i *images) {
				for k := range i.Containers {
					i.Containers[k].Image = "m/" + i.Containers[k].Image
				}
			},
		},
		{
			"either of two elements that are equal in the document may be removed",
			`{"containers":[{"image":"x"},{"image":"x"}]}`,
			`[{"op":"remove","path":"/containers/1"}]`,
			func(i *images) { i.Containers = i.Containers[1:] },
		},
	} {
		after := decode[images](t, row.raw)
		row.edit(&after)
		p, err := patch.Diff([]byte(row.raw), after)
		if got := string(p.AppendJSON(nil)); err != nil || got != row.want {
			t.Errorf("%s: got %s (%v), want %s", row.reason, got, err, row.want)
		}
	}
	raw := `{"containers":[{"name":"a","image":"x"},{"name":"b","image":"x"}]}`
	after := decode[images](t, raw)
	after.Containers = after.Containers[1:]
	p, err := patch.Diff([]byte(raw), after)
	var at *patch.Error
	if !errors.Is(err, patch.ErrAlike) || !errors.As(err, &at) || at.Pointer != "/containers" || p != nil {
		t.Errorf("got %s and %v, want an error: no key says which element was removed", p.AppendJSON(nil), err)
	}
}
