// SPDX-License-Identifier: Apache-2.0

package patch_test

import (
	"encoding/json"
	"runtime"
	"strings"
	"testing"

	"github.com/admitkit/admitkit/internal/received"
	"github.com/admitkit/admitkit/pkg/patch"
)

// These tests nest lists in lists. If the elements of a list were compared twice, the time would double at each
// level and the tests would not end.

const levels = 200

func nested(level, inner string) []byte {
	return []byte(strings.Repeat(level, levels) + inner + strings.Repeat("}]}", levels))
}

// diffOf decodes raw, calls change with the value, and returns the patch. It checks that the patch applies to raw.
func diffOf(t *testing.T, raw []byte, change func(map[string]any)) (patch.Patch, error) {
	t.Helper()
	var b received.Document
	var object map[string]any
	if _, err := b.Decode(raw, 0, 0, &object); err != nil {
		t.Fatal(err)
	}
	change(object)
	p, err := b.Diff(&object)
	if err == nil {
		if _, err := patch.Apply(raw, p); err != nil {
			t.Fatalf("the patch does not apply: %v", err)
		}
	}
	return p, err
}

func kids(object map[string]any) []any { list, _ := object["kids"].([]any); return list }

// each calls change with object and all objects inside it, the innermost first.
func each(object map[string]any, change func(map[string]any)) {
	for _, kid := range kids(object) {
		each(kid.(map[string]any), change)
	}
	change(object)
}

func TestErrorsInsideNestedListsEndTheComparison(t *testing.T) {
	raw := nested(`{"kids":[{"name":"a","spec":`, `{"x":1,"x":2}`)
	var b received.Document
	var object map[string]any
	if _, err := b.Decode(raw, 0, 0, &object); err != nil {
		t.Fatal(err)
	}
	if p, err := b.Diff(&object); p != nil || err != nil {
		t.Errorf("nothing changed: patch %s, error %v", p.AppendJSON(nil), err)
	}
	inner := object
	for list := kids(inner); len(list) > 0; list = kids(inner) {
		inner = list[0].(map[string]any)["spec"].(map[string]any)
	}
	inner["x"] = int64(1)
	if _, err := b.Diff(&object); err == nil {
		t.Error("no error for a duplicate name")
	}
}

func TestElementsAreRemovedFromEveryNestedList(t *testing.T) {
	const outer, inner = `{"name":"n","kids":[{"name":"a"},{"name":"b"},`, `,{"name":"x"},{"name":"y"},{"name":"z"}]}`
	raw := strings.Repeat(outer, levels) + `{"name":"i"}` + strings.Repeat(inner, levels)
	for _, row := range []struct {
		reason string
		left   func([]any) []any
		want   int
	}{
		{"the first", func(list []any) []any { return list[1:] }, levels},
		{"the second", func(list []any) []any { return append(list[:1:1], list[2:]...) }, levels},
		{"the last", func(list []any) []any { return list[:len(list)-1] }, levels},
		{"the last two", func(list []any) []any { return list[:len(list)-2] }, 2 * levels},
		{"the last but one", func(list []any) []any { return append(list[:len(list)-2:len(list)-2], list[len(list)-1]) }, levels},
		{"the first and the last", func(list []any) []any { return list[1 : len(list)-1] }, 2 * levels},
	} {
		p, err := diffOf(t, []byte(raw), func(object map[string]any) {
			each(object, func(o map[string]any) {
				if list := kids(o); len(list) > 0 {
					o["kids"] = row.left(list)
				}
			})
		})
		if err != nil || len(p) != row.want {
			t.Errorf("%s: %d operations, error %v", row.reason, len(p), err)
		}
	}
}

func TestNestedListsWithoutKeys(t *testing.T) {
	const depth = 1000
	raw := []byte(strings.Repeat(`{"kids":[`, depth) + `1` + strings.Repeat(`]}`, depth))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	p, err := diffOf(t, raw, func(object map[string]any) {
		for {
			inner, isObject := kids(object)[0].(map[string]any)
			if !isObject {
				break
			}
			object = inner
		}
		kids(object)[0] = json.Number("2")
	})
	runtime.ReadMemStats(&after)
	if err != nil || len(p) != 1 {
		t.Errorf("%d operations, error %v", len(p), err)
	}
	if mib := (after.TotalAlloc - before.TotalAlloc) >> 20; mib > 64 {
		t.Errorf("a document of %d bytes took %d MiB", len(raw), mib)
	}
}
