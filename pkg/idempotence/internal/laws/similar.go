// SPDX-License-Identifier: Apache-2.0

package laws

import (
	"strings"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// knownBy lists fields that identify list elements to users although the API has no key for them.
var knownBy = []string{"name", "key", "ip", "host", "path", "topologyKey", "mountPath", "type", "containerPort", "port"}

// similar reports whether two elements are the same to their author: an identifying field is equal, or they have no
// identifying field and share most members.
func similar(a, b any) bool {
	from, isObject := a.(map[string]any)
	to, areObjects := b.(map[string]any)
	if !isObject || !areObjects {
		return !isObject && !areObjects && isRewritten(a, b)
	}
	if len(from) == 1 && len(to) == 1 {
		for field, inner := range from { // such as one source of a projected volume
			if _, isObject := inner.(map[string]any); isObject && to[field] != nil {
				return similar(inner, to[field])
			}
		}
	}
	if ofOthers(from, to) {
		return false
	}
	sure := false
	for _, field := range knownBy {
		x, had := from[field]
		y, has := to[field]
		if !had && !has {
			continue
		}
		if !had || !has || !tree.Equal(x, y) {
			return false
		}
		sure = true
		break
	}
	all, same := 0, 0
	tree.Leaves(a, func(p tree.Path, value any) {
		all++
		if other, ok := tree.Get(b, p); ok && (tree.Equal(value, other) || sameQuantity(value, other)) {
			same++
		}
	})
	return sure || 2*same > all
}

// ofOthers reports whether two elements with the same type are about different things, such as the metrics of two
// resources.
func ofOthers(a, b map[string]any) bool {
	if a["type"] == nil || !tree.Equal(a["type"], b["type"]) {
		return false
	}
	for field, inner := range a {
		x, _ := inner.(map[string]any)
		y, _ := b[field].(map[string]any)
		if x["name"] != nil && y["name"] != nil && !tree.Equal(x["name"], y["name"]) {
			return true
		}
	}
	return false
}

// isRewritten reports whether b seems to be made from a: one text contains the other, or both set the same flag.
func isRewritten(a, b any) bool {
	from, isText := a.(string)
	to, areTexts := b.(string)
	if !isText || !areTexts {
		return !isText && !areTexts
	}
	flag, _, hasValue := strings.Cut(from, "=")
	return strings.Contains(to, from) || strings.Contains(from, to) && to != "" || hasValue && strings.HasPrefix(to, flag+"=")
}
