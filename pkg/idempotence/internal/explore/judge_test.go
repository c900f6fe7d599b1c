// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"testing"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

func TestSelectsOthers(t *testing.T) {
	for text, want := range map[string]bool{
		`{"spec":{"selector":{"matchLabels":{"app":"a"}},"template":{"metadata":{"labels":{"app":"a","tier":"1"}}}}}`: false,
		`{"spec":{"selector":{"matchLabels":{"app":"a"}},"template":{"metadata":{"labels":{"app":"b"}}}}}`:            true,
		`{"spec":{"selector":{"matchLabels":{"app":"a"}},"template":{"spec":{}}}}`:                                    true,
		`{"spec":{"selector":{"matchLabels":{"app":"a"}}}}`:                                                           false,
		`{"spec":{"selector":{"matchExpressions":[{"key":"a","operator":"b"}]},"template":{"spec":{}}}}`:              true,
		`{"spec":{"selector":{"matchExpressions":[{"key":"a","operator":"DoesNotExist"}]},"template":{"spec":{}}}}`:   false,
		`{"spec":{"selector":{"matchLabels":"app"},"template":{"spec":{}}}}`:                                          true,
		`{"spec":{"selector":{"matchLabels":{}},"template":{"spec":{}}}}`:                                             false,
		`{"spec":{"template":{"spec":{}}}}`:                                                                           false,
		`{"spec":{"selector":{"app":"a"},"template":{"spec":{}}}}`:                                                    false,
	} {
		doc, err := tree.Decode([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if got := selectsOthers(doc); got != want {
			t.Errorf("%s: got %t", text, got)
		}
	}
}
