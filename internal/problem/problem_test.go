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
		{"another type of error", errors.New("x"), nil},
		{"hints stay in order", New("x").Hint("a").Hint("b"), []string{"a", "b"}},
		{"wrapped by fmt.Errorf", fmt.Errorf("x: %w", New("y").Hint("a")), []string{"a"}},
		{"wrapped by an Error without hints", New("x: %w", New("y").Hint("a")), []string{"a"}},
		{"a hint added to those of a wrapped error", New("x: %w", New("y").Hint("a")).Hint("b"), []string{"a", "b"}},
	}
	for _, row := range rows {
		if got := Hints(row.err); !slices.Equal(got, row.want) {
			t.Errorf("%s: %q, want %q", row.reason, got, row.want)
		}
	}
	if err := New("x: %w", ErrFound).Hint("a"); !errors.Is(err, ErrFound) || err.Error() != "x: something was found" {
		t.Errorf("the wrapped error is lost: %v", err)
	}
}
