// SPDX-License-Identifier: Apache-2.0

//go:build !race

package encode_test

import (
	"reflect"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admitkit/admitkit/internal/encode"
	"github.com/admitkit/admitkit/internal/shape"
)

// TestAppendAllocatesNothing appends the most frequent values of patches to a large buffer. Append must not allocate.
func TestAppendAllocatesNothing(t *testing.T) {
	meta := metav1.ObjectMeta{Name: "web", Labels: map[string]string{"b": "1", "a": "<2>"}, CreationTimestamp: metav1.Unix(1_700_000_000, 0)}
	loose := map[string]any{"b": []any{int64(1), 1.5, "x", nil, true}, "a": map[string]any{"c": "d"}}
	buffer := make([]byte, 0, 4096)
	for _, x := range []any{&smallSidecar, &meta, &loose} {
		v := reflect.ValueOf(x).Elem()
		s := shape.Of(v.Type())
		if n := testing.AllocsPerRun(100, func() { _, _ = encode.Append(buffer, v, s) }); n != 0 {
			t.Errorf("%T: %v allocations", x, n)
		}
	}
}
