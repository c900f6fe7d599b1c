// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// TestCacheIsBounded decodes and patches 150 large objects. The caches of documents and patches must stay small.
func TestCacheIsBounded(t *testing.T) {
	k := objects.KindOf(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"})
	text := strings.Repeat("x", 900<<10)
	before := heap()
	for i := range 150 {
		o, err := k.Object(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": fmt.Sprint("n", i)}, "data": map[string]any{"text": text}})
		if err != nil {
			t.Fatal(err)
		}
		patch := []byte(`[{"op":"add","path":"/metadata/labels","value":{"a":"b"}}]`)
		operations, err := jsonpatch.DecodePatch(patch)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := k.Memory.Patch(operations, patch, o.Raw); err != nil {
			t.Fatal(err)
		}
	}
	if grown := heap() - before; grown > 96<<20 {
		t.Errorf("150 objects of 900 KiB take %d MiB", grown>>20)
	}
	runtime.KeepAlive(k)
}

func heap() int64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// TestCacheReturnsDecodedDocuments decodes each document twice. The second call must return the cached object.
func TestCacheReturnsDecodedDocuments(t *testing.T) {
	k := objects.KindOf(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"})
	var all []*objects.Object
	for i := range 600 {
		raw := tree.Encode(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": fmt.Sprint("n", i%300)}})
		o, err := k.TakeIn(raw)
		if err != nil {
			t.Fatal(err)
		}
		if all = append(all, o); i >= 300 && all[i-300] != o {
			t.Fatalf("object %d is taken in again", i)
		}
	}
}
