// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"strconv"
	"strings"

	"github.com/admitkit/admitkit/internal/jsonraw"
)

// patch replaces the secrets in the operations of a patch. The path of an operation decides whether its value is secret,
// as in the object.
func (c *call) patch(operations *node) {
	arguments := map[string]string{} // the last argument that the patch adds to a list
	for i := range operations.kids {
		op := &operations.kids[i]
		if op.kind != jsonraw.Object {
			c.walk(op, place{})
		}
		for j, name := range op.names {
			switch name {
			case "value":
				c.patchValue(op.str("path"), &op.kids[j], arguments)
			case "op", "path", "from":
			default:
				c.walk(&op.kids[j], place{name: name})
			}
		}
	}
}

// patchValue replaces the secrets in the value of an operation.
func (c *call) patchValue(path string, value *node, arguments map[string]string) {
	tokens := tokensOf(path)
	at, parent := c.placeOf(tokens, value)
	if at.rule == argument && len(tokens) > 0 && value.kind == jsonraw.String {
		last := tokens[len(tokens)-1]
		list := path[:strings.LastIndexByte(path, '/')]
		before, after := arguments[list], value.text
		if isSecretArgument(before, after) || isSecretArgument(elementBefore(parent, last), after) {
			at.rule = certain
		}
		arguments[list] = after
	}
	c.walk(value, at)
}

// elementBefore returns the string before an index of a list.
func elementBefore(list *node, index string) string {
	if list == nil || len(list.kids) == 0 {
		return ""
	}
	i := len(list.kids)
	if index != "-" {
		i, _ = strconv.Atoi(index)
	}
	if i < 1 || i > len(list.kids) {
		return ""
	}
	return list.kids[i-1].text
}

// placeOf returns the place of the value that an operation writes, and the array or object that contains it in the
// object of the request, or nil. The result may be wrong in a list in which earlier operations have moved elements.
func (c *call) placeOf(tokens []string, value *node) (at place, parent *node) {
	n := c.request.member("object")
	at = place{name: "object", paths: c.paths}
	for i, token := range tokens {
		parent = n
		last := i == len(tokens)-1
		_, err := strconv.Atoi(token)
		switch {
		case n != nil && n.kind == jsonraw.Array, n == nil && (err == nil || token == "-"):
			at = c.element(at, token)
			n = elementAt(n, token)
		default:
			next := n.member(token)
			known := next
			switch {
			case last:
				known = value
			case known == nil:
				known = &node{kind: jsonraw.Object} // the operation applies only if the parent exists
			}
			at = c.member(factsOf(n), at, token, known)
			n = next
		}
	}
	return at, parent
}

func elementAt(n *node, index string) *node {
	if i, err := strconv.Atoi(index); n != nil && err == nil && i >= 0 && i < len(n.kids) {
		return &n.kids[i]
	}
	return nil
}
