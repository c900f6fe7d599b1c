// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"strconv"
	"strings"
)

// metaTraits are the traits of an object's metadata.
var metaTraits = []choice{
	{0, []trait{{"name", nameIt}, {"name", nameIt}, {"generateName only", generateName}}},
	{0, []trait{{"no namespace", noNamespace}, {"namespace", namespaceIt}}},
	{0, []trait{{"no labels", absent("labels")}, {"no labels", absent("labels")}, {"empty labels", empty("labels")}, {"labels", labels}}},
	{0, []trait{{"no annotations", absent("annotations")}, {"empty annotations", empty("annotations")}, {"annotations", annotations}}},
	one(0.3, "odd texts", oddTexts),
	one(0.2, "finalizers", finalizers),
	one(0.3, "owner references", owners),
	one(0.2, "null members", func(s *scope) bool { return put(s.meta, "creationTimestamp", nil) }),
}

// templateMetaTraits are the traits of a Pod template's metadata.
var templateMetaTraits = []choice{
	{0, []trait{{"template without labels", absent("labels")}, {"template labels", labels}}},
	{0, []trait{{"template without annotations", absent("annotations")}, {"template with empty annotations", empty("annotations")}, {"template annotations", annotations}}},
	one(0.3, "odd texts", oddTexts),
	// Go clients write null for an unset time.
	one(0.4, "null members", func(s *scope) bool { return put(s.meta, "creationTimestamp", nil) }),
}

func named(m object) bool { return m["name"] != nil || m["generateName"] != nil }

var words = []string{"app", "web", "a", "api", "data", "worker", "proxy", "main"}

func nameIt(s *scope) bool {
	if named(s.meta) {
		return false
	}
	name := pick(s.build, words...) + pick(s.build, "", "-1", "-v2", "-5d59d67564-x7k2p")
	if !s.rules.short && s.chance(0.1) {
		name += ".example.com"
	}
	s.meta["name"] = name
	return true
}

func generateName(s *scope) bool {
	if named(s.meta) {
		return false
	}
	s.meta["generateName"] = pick(s.build, words...) + pick(s.build, "-", "-5d59d67564-")
	return true
}

func noNamespace(s *scope) bool { return s.meta["namespace"] == nil }

func namespaceIt(s *scope) bool {
	return !s.rules.cluster && s.Namespace != "" && put(s.meta, "namespace", s.Namespace)
}

func absent(name string) func(*scope) bool {
	return func(s *scope) bool { return s.meta[name] == nil }
}

func empty(name string) func(*scope) bool {
	return func(s *scope) bool { return put(s.meta, name, object{}) }
}

// An entry is a member of a map of strings.
type entry struct{ key, value string }

var labelEntries = []entry{
	{"app", "web"}, {"app.kubernetes.io/name", "web"}, {"app.kubernetes.io/instance", "web-1"}, {"tier", "back-end_2.0"},
	{"team", ""}, {"version", "1.10"}, {"enabled", "true"}, {"pod-template-hash", "5d59d67564"}, {"example.com/a.b_c-d", "X"},
}

var annotationEntries = []entry{
	{"example.com/note", "plain"}, {"note", ""}, {"prometheus.io/port", "9090"}, {"prometheus.io/scrape", "true"},
	{"cluster-autoscaler.kubernetes.io/safe-to-evict", "false"}, {"example.com/a.b_c-d", "{\"a\": [1, 2.50, null]}"},
	{"kubectl.kubernetes.io/last-applied-configuration", "{\"apiVersion\":\"v1\",\"kind\":\"Pod\"}\n"},
	{"checksum/config", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
}

// oddEntries have texts that encoders write in different ways, or that break a template which does not quote them.
var oddEntries = []entry{
	{"example.com/html", `<a href="x?a=1&b=2">&amp;</a>`}, {"example.com/unicode", "naïve ☃ 𝄞 日本語"},
	{"example.com/separators", "a\u2028b\u2029c"}, {"example.com/control", "tab\tnew\nline\r\\ \"quoted\" \x7f"},
	{"example.com/template", "{{ .Values.x }} $(VAR) ${VAR} %s %d"}, {"example.com/yaml", "yes: no\n- 1\n"},
	{"example.com/spaces", "  both ends  "}, {"example.com/pointer", "/spec/containers/0~1a~0b"},
}

// enter adds up to n of the entries to m.
func (b *build) enter(m object, n int64, entries []entry) bool {
	if m == nil {
		return false
	}
	before := len(m)
	for range n {
		e := pick(b, entries...)
		put(m, e.key, e.value)
	}
	return len(m) > before
}

func labels(s *scope) bool {
	return s.enter(child(s.meta, "labels"), s.between(1, 3), labelEntries)
}

func annotations(s *scope) bool {
	return s.enter(child(s.meta, "annotations"), s.between(1, 3), annotationEntries)
}

func oddTexts(s *scope) bool {
	m := child(s.meta, "annotations")
	if s.chance(0.1) {
		put(m, "example.com/long", strings.Repeat("0123456789 ", int(s.between(100, 1000))))
	}
	return s.enter(m, s.between(1, 3), oddEntries)
}

// freshEntry returns a label or annotation that m does not have.
func (b *build) freshEntry(m object) (string, string) {
	prefix := pick(b, "", "example.com/", "stranger.example.org/")
	key := b.fresh(func(k string) bool { _, taken := m[prefix+k]; return taken }, "added", "app2", "note", "z", "owner")
	return prefix + key, pick(b, "yes", "", "1", "x-"+key)
}

func finalizers(s *scope) bool {
	return put(s.meta, "finalizers", texts([]string{"example.com/hold", "example.com/second"}[:s.between(1, 2)]...))
}

func owners(s *scope) bool {
	if s.meta["ownerReferences"] != nil {
		return false
	}
	for i := range s.between(1, 2) {
		appendTo(s.meta, "ownerReferences", s.owner(i == 0))
	}
	return true
}

func (b *build) owner(controller bool) object {
	o := object{
		"apiVersion": "apps/v1", "kind": pick(b, "ReplicaSet", "Deployment"), "name": pick(b, words...),
		"uid": "d9607e19-f88f-11e6-a518-" + strconv.FormatInt(b.between(100000000000, 999999999999), 10),
	}
	if controller {
		o["controller"] = true
	}
	if b.chance(0.5) {
		o["blockOwnerDeletion"] = b.chance(0.5)
	}
	return o
}
