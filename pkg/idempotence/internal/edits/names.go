// SPDX-License-Identifier: Apache-2.0

package edits

import (
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/texts"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// Twins are edits that each add two named values to a document. The names in Plain are easy to tell apart. The names in
// each entry of Alike are similar, so a webhook may confuse them.
type Twins struct {
	Plain []Edit
	Alike [][]Edit
	// Many are edits that each add one value. Their names are easy to tell apart.
	Many []Edit
}

// manyNames is the number of names in Twins.Many. Two of them have the same hash if the webhook shortens it to four
// bits, and most likely if it shortens it to eight.
const manyNames = 48

// longName is the greatest length of a DNS label.
const longName = 63

// alikeNames returns pairs of names that begin with base. They become equal if a webhook shortens them or replaces
// characters.
func alikeNames(base string) [][2]string {
	if len(base) > 8 {
		base = base[:8]
	}
	base = strings.Trim(base, "-._")
	long := base + "-" + strings.Repeat("x", longName-len(base)-2)
	return [][2]string{{long + "1", long + "2"}, {base + ".t-a", base + "-t-a"}, {base + "_T", base + "-T"}, {base + "-t", base + "-T"}}
}

// alikeHosts returns pairs of host names in a domain. They become equal if a webhook shortens them or replaces
// characters.
func alikeHosts(domain string) [][2]string {
	long := strings.Repeat("x", longName-1)
	return [][2]string{{"t-a." + domain, "t.a." + domain}, {long + "1." + domain, long + "2." + domain}}
}

// NameTwins returns edits that add two named values wherever a document has names: two copies of the first element of a
// list, two host names, two entries of the data of a ConfigMap or Secret, or an annotation that lists two items.
func NameTwins(doc any) (all []Twins) {
	with := func(name func(text string) string, alike [][2]string, edits func(a, b string) []Edit) {
		t := Twins{Plain: edits(name("t1"), name("u2"))}
		for _, names := range alike {
			t.Alike = append(t.Alike, edits(names[0], names[1]))
		}
		for i := range manyNames / 2 {
			t.Many = append(t.Many, edits(name("m"+strconv.Itoa(i)), name("n"+strconv.Itoa(i*i+7)))...)
		}
		all = append(all, t)
	}
	add := func(base string, edits func(a, b string) []Edit) {
		with(func(text string) string { return base + "-" + text }, alikeNames(base), edits)
	}
	addHosts := func(domain string, edits func(a, b string) []Edit) {
		with(func(text string) string { return text + "." + domain }, alikeHosts(domain), edits)
	}
	tree.Lists(doc, func(p tree.Path, list []any) {
		if len(list) == 0 || p[0].Name == "metadata" || p.Last() == "volumeMounts" || p.Last() == "env" || p.Last() == "ownerReferences" {
			return
		}
		path := slices.Clone(p)
		inserts := func(element func(name string) any) func(a, b string) []Edit {
			return func(a, b string) []Edit {
				return []Edit{{What: Insert, Path: path, Value: element(a)}, {What: Insert, Path: path, Value: element(b)}}
			}
		}
		switch element := list[0].(type) {
		case string:
			if domain, ok := domainOf(element); ok {
				addHosts(domain, inserts(func(name string) any { return name }))
			}
		case Fields:
			if name, _ := element["name"].(string); name != "" {
				add(name, inserts(func(name string) any { return named(element, name) }))
			} else if domain, ok := domainOf(element["host"]); ok {
				addHosts(domain, inserts(func(name string) any {
					out := tree.Clone(element).(Fields)
					out["host"] = name
					return out
				}))
			}
		}
	})
	tree.Leaves(doc, func(p tree.Path, value any) {
		n := len(p)
		text, ok := value.(string)
		switch {
		case !ok || n < 2:
		case n == 2 && p[0].Name == "data":
			add("key", func(a, b string) []Edit {
				return []Edit{{What: Put, Path: p[:1].Member(a), Value: text}, {What: Put, Path: p[:1].Member(b), Value: text}}
			})
		case p[n-2].Name == "annotations" && strings.Contains(text, ",") && !strings.ContainsAny(text, "{}[]=: "):
			add(texts.Format(",").Items(text + ",x")[0], func(a, b string) []Edit {
				return []Edit{{What: Put, Path: p, Value: a + "," + b}}
			})
		}
	})
	return all
}

// domainOf returns a host name below which other host names can be added: the value itself, without a leading "*.". It
// returns false unless the value is a host name with at least two dots and no IP address.
func domainOf(value any) (domain string, ok bool) {
	text, _ := value.(string)
	text = strings.TrimPrefix(text, "*.")
	if strings.Count(text, ".") < 2 || len(validation.IsDNS1123Subdomain(text)) > 0 || strings.Trim(text, "0123456789.") == "" {
		return "", false
	}
	return text, true
}

// named returns a copy of an element with another name. It removes host ports, which two containers cannot share.
func named(element Fields, name string) Fields {
	out := tree.Clone(element).(Fields)
	out["name"] = name
	ports, _ := out["ports"].([]any)
	for _, p := range ports {
		if port, ok := p.(Fields); ok {
			delete(port, "hostPort")
		}
	}
	return out
}
