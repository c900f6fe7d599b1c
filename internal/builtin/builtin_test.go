// SPDX-License-Identifier: Apache-2.0

package builtin

import "testing"

func TestFull(t *testing.T) {
	for _, object := range full(t) {
		obj, err := typed(object)
		if err != nil {
			t.Error(object["kind"], err)
			continue
		}
		if errs := Validate(obj); len(errs) > 0 {
			t.Error(object["kind"], errs.ToAggregate())
		}
	}
}
