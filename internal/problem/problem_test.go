// SPDX-License-Identifier: Apache-2.0

package problem

import (
	"errors"
	"fmt"
	"slices"
	"testing"
)

func TestHints(t *testing.T) {
	rows := []struct {
		reason string
		err    error
		want   []string
	}{
		{"no error", nil, nil},
		{"an error of somebody else", errors.New("x"), nil},
		{"its own, in order", New("x").Hint("a").Hint("b"), []string{"a", "b"}},
		{"below fmt.Errorf", fmt.Errorf("x: %w", New("y").Hint("a")), []string{"a"}},
		{"below another one that has none", New("x: %w", New("y").Hint("a")), []string{"a"}},
		{"more are added to them", New("x: %w", New("y").Hint("a")).Hint("b"), []string{"a", "b"}},
	}
	for _, row := range rows {
		if got := Hints(row.err); !slices.Equal(got, row.want) {
			t.Errorf("%s: %q, want %q", row.reason, got, row.want)
		}
	}
	if err := New("x: %w", ErrFound).Hint("a"); !errors.Is(err, ErrFound) || err.Error() != "x: something was found" {
		t.Errorf("what it wraps is lost: %v", err)
	}
}
