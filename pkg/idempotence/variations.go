// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/admitkit/admitkit/internal/k8svalidation"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// mostVaried are the objects that are tried with all that could be otherwise in them.
const mostVaried = 3

// tryAlike has the laws look at objects that are like one that was written in all but one thing, and at
// what comes of it when another party makes that difference later.
func (r *run) tryAlike(doc any, result *object) {
	var all [][]Edit
	if r.opts.uses(singleSettings) {
		all = slices.Concat(settings(doc), otherSettings(doc))
	}
	if r.opts.uses(variedSamples) {
		all = append(all, r.variations(doc)...)
	}
	for _, edits := range all {
		other, ok := doc, true
		for _, e := range edits {
			if ok {
				other, ok = e.apply(other)
			}
		}
		if !ok {
			continue
		}
		x, ok := r.valid(other)
		if !ok {
			continue
		}
		for _, law := range []Law{L10, L2, L1} {
			r.try(&Case{Law: law, Object: x.doc})
		}
		if r.opts.uses(olderObjects) {
			r.try(&Case{Law: L6, Object: x.doc, Variant: olderObject})
		}
	}
	x, ok := r.valid(doc)
	if !ok || !r.opts.uses(singleSettings) {
		return
	}
	for _, edits := range settings(result.doc) {
		r.try(&Case{Law: L4a, Object: x.doc, Edits: edits})
	}
}

// variations are documents like one that a user gave, each of them with one thing missing, empty, or
// another: what a sample shows, others need not have. Where nobody knows what is valid, that is
// so for labels and annotations only.
func (r *run) variations(doc any) (list [][]Edit) {
	add := func(what EditKind, p tree.Path, value any) {
		list = append(list, []Edit{{What: what, Path: p, Value: value}})
	}
	knows := r.kind.knowsValid()
	for _, name := range []string{"a", "with.dots", "0-1-2-3-4-5-6-7-8-9-" + strings.Repeat("x", 43)} {
		add(Put, metadata.Member("name"), name)
	}
	if name, ok := tree.Get(doc, metadata.Member("name")); ok {
		list = append(list, []Edit{{What: Remove, Path: metadata.Member("name")}, {What: Put, Path: metadata.Member("generateName"), Value: fmt.Sprint(name, "-")}})
	}
	nodes(nil, doc, func(p tree.Path, value any) {
		if isOfObject(p) || !knows && !isFree(p) {
			return
		}
		add(Remove, p, nil)
		switch value := value.(type) {
		case []any:
			if len(value) > 0 {
				add(Put, p, []any{})
			}
		case fields:
			if len(value) > 0 {
				add(Put, p, fields{})
			}
		}
		if isFree(p) {
			for _, text := range oddTexts(value) {
				add(Put, p, text)
			}
		}
	})
	return list
}

// knowsValid reports whether it is known what the API server refuses.
func (k *kind) knowsValid() bool {
	switch {
	case k.custom != nil, k.server != nil:
		return true
	case k.goType == nil:
		return false
	}
	object, ok := reflect.New(k.goType).Interface().(runtime.Object)
	return ok && k8svalidation.Knows(object)
}

// nodes calls f with each value in a document but the whole, parents first.
func nodes(p tree.Path, value any, f func(tree.Path, any)) {
	if len(p) > 0 {
		f(slices.Clone(p), value)
	}
	switch value := value.(type) {
	case fields:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			nodes(p.Member(name), value[name], f)
		}
	case []any:
		seen := map[string]int{}
		for _, element := range value {
			key := tree.Identity(p, element)
			nodes(p.Element(key, seen[key]), element, f)
			seen[key]++
		}
	}
}

// isOfObject reports whether a value tells which object it is.
func isOfObject(p tree.Path) bool {
	switch p[0].Name {
	case "apiVersion", "kind":
		return true
	case "metadata":
		return len(p) == 1 || len(p) == 2 && slices.Contains([]string{"name", "generateName", "namespace", "uid", "resourceVersion", "creationTimestamp"}, p[1].Name)
	}
	return false
}

// isFree reports whether a value is that of a label or an annotation, which may be any text.
func isFree(p tree.Path) bool {
	return len(p) > 1 && !p[len(p)-1].Element && (p[len(p)-2].Name == "annotations" || p[len(p)-2].Name == "labels")
}

// oddTexts are what people write where something else is meant.
func oddTexts(value any) []string {
	text, _ := value.(string)
	list := []string{"", "true", "false", "0", "-1", "1", "1.5", "a lot", "{", "[]", "a,b", "A", text + "0", strings.Repeat("x", 63)}
	if n, err := strconv.Atoi(text); err == nil {
		list = append(list, strconv.Itoa(n+1), "9999999999999999999")
	}
	return slices.DeleteFunc(list, func(s string) bool { return s == text })
}
