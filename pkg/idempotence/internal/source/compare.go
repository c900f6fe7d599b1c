// SPDX-License-Identifier: Apache-2.0

package source

import (
	"go/ast"
	"go/token"
	"strings"
)

// A Pair is a key of a map, and a value with which the code compares the entry.
type Pair struct{ Key, Value string }

// compare records the pairs and keys in an expression or a statement: comparisons of a map entry with a constant text,
// tables that are indexed by an entry, and entries of labels and annotations.
func (c *collector) compare(r reached, n ast.Node) {
	switch n := n.(type) {
	case *ast.BinaryExpr:
		if n.Op == token.EQL || n.Op == token.NEQ {
			c.pair(r, n.X, n.Y)
			c.pair(r, n.Y, n.X)
		}
	case *ast.SwitchStmt:
		if n.Tag == nil {
			return
		}
		for _, s := range n.Body.List {
			for _, value := range s.(*ast.CaseClause).List {
				c.pair(r, n.Tag, value)
			}
		}
	case *ast.CallExpr:
		c.calls(r, n)
	case *ast.IndexExpr:
		if text, ok := c.text(r, n.Index); ok && isNotes(n.X) {
			c.keepKey(text)
		}
		if key, ok := c.entry(r, n.Index, 0); ok {
			c.values(r, key, n.X)
		}
	}
}

// pair records a pair if entry is the entry of a map with a constant key, and value is a constant text.
func (c *collector) pair(r reached, entry, value ast.Expr) {
	key, ok := c.entry(r, entry, 0)
	if text, isText := c.text(r, value); ok && isText && text != "" {
		c.texts.Pairs = append(c.texts.Pairs, Pair{key, text})
	}
}

// calls records pairs for a call such as strings.HasPrefix(annotations["key"], "value") or
// slices.Contains(values, labels["key"]). It records the key in a call such as text(pod, "metadata", "labels", "key").
func (c *collector) calls(r reached, n *ast.CallExpr) {
	inNotes := false
	for i, argument := range n.Args {
		text, isText := c.text(r, argument)
		if isText && inNotes && i == len(n.Args)-1 {
			c.keepKey(text)
		}
		inNotes = inNotes || isText && isNotesName(text)
		key, ok := c.entry(r, argument, 0)
		if !ok {
			continue
		}
		for j, other := range n.Args {
			if i != j {
				c.pair(r, argument, other)
				c.values(r, key, other)
			}
		}
	}
}

// values records a pair of a key with each element of a list of constant texts, or with each key of a map.
func (c *collector) values(r reached, key string, list ast.Expr) {
	if name, ok := list.(*ast.Ident); ok {
		list, _ = r.in.value(name.Name)
	}
	literal, ok := list.(*ast.CompositeLit)
	if !ok {
		return
	}
	for _, element := range literal.Elts {
		if field, ok := element.(*ast.KeyValueExpr); ok {
			element = field.Key
		}
		if text, ok := c.text(r, element); ok && text != "" {
			c.texts.Pairs = append(c.texts.Pairs, Pair{key, text})
		}
	}
}

// entry returns the constant key in an expression for the entry of a map: annotations["key"], labels.Get("key"),
// annotation(pod, "key"), a variable with such a value, or a function of it such as strings.ToLower.
func (c *collector) entry(r reached, e ast.Expr, depth int) (key string, ok bool) {
	if depth > deepestConstant {
		return "", false
	}
	switch e := e.(type) {
	case *ast.ParenExpr:
		return c.entry(r, e.X, depth+1)
	case *ast.IndexExpr:
		return c.text(r, e.Index)
	case *ast.Ident:
		if value := c.assigned(r)[e.Name]; value != nil {
			return c.entry(r, value, depth+1)
		}
	case *ast.CallExpr:
		if len(e.Args) == 0 {
			return "", false
		}
		last := e.Args[len(e.Args)-1]
		if key, ok := c.text(r, last); ok {
			return key, true
		}
		if len(e.Args) == 1 {
			return c.entry(r, last, depth+1)
		}
	}
	return "", false
}

// assigned returns the values that the variables of a function get from a map entry or a call, by name.
func (c *collector) assigned(r reached) map[string]ast.Expr {
	if known, ok := c.variables[r.node]; ok {
		return known
	}
	found := map[string]ast.Expr{}
	c.variables[r.node] = found
	ast.Inspect(r.node, func(n ast.Node) bool {
		if a, ok := n.(*ast.AssignStmt); ok && len(a.Rhs) == 1 {
			switch a.Rhs[0].(type) {
			case *ast.IndexExpr, *ast.CallExpr:
				if name, ok := a.Lhs[0].(*ast.Ident); ok && found[name.Name] == nil {
					found[name.Name] = a.Rhs[0]
				}
			}
		}
		return true
	})
	return found
}

// isNotes reports whether an expression is a map of labels or annotations, judged by its name.
func isNotes(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return isNotesName(e.Name)
	case *ast.SelectorExpr:
		return isNotesName(e.Sel.Name)
	case *ast.CallExpr:
		return isNotes(e.Fun)
	}
	return false
}

func isNotesName(name string) bool {
	name = strings.ToLower(name)
	return strings.HasSuffix(name, "labels") || strings.HasSuffix(name, "annotations")
}

// keepKey records a key of labels or annotations.
func (c *collector) keepKey(text string) {
	if text != "" && len(text) <= 253 && len(c.texts.Keys) < mostTexts {
		c.texts.Keys = append(c.texts.Keys, text)
	}
}
