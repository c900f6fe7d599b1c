// SPDX-License-Identifier: Apache-2.0

package k8svalidation

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

// A tree is an object as decoded JSON.
type tree = map[string]any

// full returns an object of each kind with nearly every field that the package validates: the Pod, and then the kinds
// in the order of testdata/kinds.yaml.
func full(t testing.TB) []tree {
	t.Helper()
	pod := trees(t, "testdata/pod.yaml")[0]
	list := []tree{pod}
	for _, object := range trees(t, "testdata/kinds.yaml") {
		kind := object["kind"].(string)
		template := tree{"metadata": tree{"labels": copied(pod["metadata"].(tree)["labels"])}, "spec": copied(pod["spec"])}
		spec := template["spec"].(tree)
		switch kind {
		case "Job", "CronJob":
			spec["restartPolicy"] = "Never"
		default:
			delete(spec, "activeDeadlineSeconds")
		}
		switch kind {
		case "Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "ReplicationController":
			object["spec"].(tree)["template"] = template
		case "CronJob":
			object["spec"].(tree)["jobTemplate"].(tree)["spec"].(tree)["template"] = template
		case "PodTemplate":
			object["template"] = template
		}
		list = append(list, object)
	}
	return list
}

func trees(t testing.TB, file string) []tree {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var list []tree
	for _, document := range bytes.Split(data, []byte("\n---\n")) {
		var object tree
		if err := yaml.Unmarshal(document, &object); err != nil {
			t.Fatal(err)
		}
		list = append(list, object)
	}
	return list
}

func copied(v any) any {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	var c any
	if err := json.Unmarshal(data, &c); err != nil {
		panic(err)
	}
	return c
}

// typed decodes the tree as the API server does. It fails if the tree does not fit the type.
func typed(object tree) (runtime.Object, error) {
	data, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	obj, _, err := scheme.Codecs.UniversalDeserializer().Decode(data, nil, nil)
	return obj, err
}

// An edit is a change to one member of a tree.
type edit struct {
	path string
	do   func(*rand.Rand) string
}

// edits lists the random edits that are possible in a tree.
func edits(path string, v any, set func(any), list *[]edit) {
	switch v := v.(type) {
	case tree:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			at := path + "." + key
			if at == ".apiVersion" || at == ".kind" || at == ".metadata.namespace" {
				continue
			}
			if at != ".metadata" {
				*list = append(*list, edit{at, func(*rand.Rand) string { delete(v, key); return "removed" }})
			}
			edits(at, v[key], func(x any) { v[key] = x }, list)
			if isMapPath(path) {
				*list = append(*list, edit{at, func(r *rand.Rand) string {
					to := oddText(r)
					v[to] = v[key]
					delete(v, key)
					return fmt.Sprintf("renamed %q", to)
				}})
			}
		}
	case []any:
		for i := range v {
			edits(fmt.Sprintf("%s[%d]", path, i), v[i], func(x any) { v[i] = x }, list)
		}
		if len(v) == 0 {
			return
		}
		*list = append(*list, edit{path, func(r *rand.Rand) string { set(append(slices.Clone(v), copied(v[r.IntN(len(v))]))); return "repeated" }},
			edit{path, func(r *rand.Rand) string {
				i := r.IntN(len(v))
				set(slices.Delete(slices.Clone(v), i, i+1))
				return "shortened"
			}})
	case string:
		*list = append(*list, edit{path, func(r *rand.Rand) string { s := oddText(r); set(s); return fmt.Sprintf("= %q", s) }})
	case float64:
		*list = append(*list, edit{path, func(r *rand.Rand) string { n := oddNumber(r); set(n); return fmt.Sprint("= ", n) }})
	case bool:
		*list = append(*list, edit{path, func(*rand.Rand) string { set(!v); return "flipped" }})
	}
}

// isMapPath reports whether users choose the keys of the object at the path.
func isMapPath(path string) bool {
	for _, name := range []string{"labels", "annotations", "matchLabels", "nodeSelector", "requests", "limits", "data", "stringData", "binaryData", "spec.selector"} {
		if strings.HasSuffix(path, "."+name) {
			return true
		}
	}
	return false
}

func oddText(r *rand.Rand) string {
	texts := []string{
		"", "a", "web", "Upper", "under_score", "a.b", "example.com/x", "a/b/c", "-dash", "dash-", "..", "../up", "a/../b", "..x", "/abs", "x y", " x",
		"1", "-1", "0", "5k", "10Mi", "150%", "0%", "Always", "Never", "None", "ClusterIP", "Exists", "NotIn", "x-", "_", "8080", "http", "TCP",
		"latest", "img:latest", "Img", "host:5000/img:v1@sha256:00", "localhost/x", "metadata.labels", "*", "*.a.b", strings.Repeat("l", 64), strings.Repeat("d", 300),
		"default", "scratch", "setup", "data", "requests.cpu", "hugepages-2Mi", "kubernetes.io/x", "requests.example.com/x", "é", "a=b", "\t",
	}
	return texts[r.IntN(len(texts))]
}

func oddNumber(r *rand.Rand) float64 {
	numbers := []float64{-1, 0, 1, 2, 53, 511, 512, 8080, 65535, 65536, 100000, 4294967297}
	return numbers[r.IntN(len(numbers))]
}

// generated returns a copy of a random object of from, with some fields removed and others changed. It also returns
// a description of each change.
func generated(seed uint64, from []tree) (tree, []string) {
	r := rand.New(rand.NewPCG(seed, 0))
	object := from[0]
	if r.IntN(2) == 0 {
		object = from[r.IntN(len(from))]
	}
	object = copied(object).(tree)
	var log []string
	removals := 0
	if r.IntN(3) > 0 {
		removals = r.IntN(40)
	}
	for range removals { // remove many fields, so that more defaults are tested
		var list []edit
		edits("", object, nil, &list)
		if len(list) == 0 {
			break
		}
		e := list[r.IntN(len(list))]
		if !strings.HasPrefix(e.path, ".spec.") || strings.Contains(e.path, "selector") {
			continue
		}
		before := copied(object).(tree)
		if e.do(rand.New(rand.NewPCG(0, 0))) != "removed" || !isRight(object) {
			object = before
			continue
		}
		log = append(log, e.path+" removed")
	}
	for range [...]int{0, 1, 1, 1, 2, 3}[r.IntN(6)] {
		var list []edit
		edits("", object, nil, &list)
		if len(list) == 0 {
			break
		}
		e := list[r.IntN(len(list))]
		log = append(log, e.path+" "+e.do(r))
	}
	return object, log
}

// isRight reports whether an object is still valid. If it is not, generated restores the removed field. isRight uses
// the code under test, which at worst makes the objects less varied.
func isRight(object tree) bool {
	obj, err := typed(object)
	return err == nil && len(Validate(obj)) == 0
}
