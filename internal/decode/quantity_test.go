// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// TestQuantitiesAreNotShared changes a decoded quantity in place, and then decodes the same text again. The quantity
// does not fit an int64, so its value is behind a pointer.
func TestQuantitiesAreNotShared(t *testing.T) {
	const text = "123456789012345678901234"
	want := resource.MustParse(text)
	for i := range 3 {
		var list corev1.ResourceList
		if err := Unmarshal([]byte(`{"cpu":"`+text+`"}`), &list); err != nil {
			t.Fatal(err)
		}
		q := list["cpu"]
		if q.Cmp(want) != 0 {
			t.Fatalf("the quantity that was decoded %d times before is %s", i, q.AsDec())
		}
		q.AsDec().SetUnscaled(1)
	}
}

func TestCacheOfQuantitiesIsBounded(t *testing.T) {
	var d decoder
	for i := range 3 * mostQuantities {
		if q, err := d.quantity(fmt.Appendf(nil, `"%dm"`, i)); err != nil || q.MilliValue() != int64(i) {
			t.Fatalf("%dm is %s, error %v", i, q.String(), err)
		}
	}
	if n := len(d.quantities); n == 0 || n > mostQuantities {
		t.Errorf("%d quantities are cached, want at most %d", n, mostQuantities)
	}
	if _, err := d.quantity([]byte(`"0000000000000000000000000000000000000000001"`)); err != nil {
		t.Fatal(err)
	}
	if _, long := d.quantities[`"0000000000000000000000000000000000000000001"`]; long {
		t.Error("a long text is cached")
	}
}
