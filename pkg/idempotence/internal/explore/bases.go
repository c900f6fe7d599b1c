// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/edits"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

const (
	// mostBases is the maximum number of objects to which a search adds labels and annotations.
	mostBases = 8
	// mostDrawn is the number of generated objects from which these are chosen.
	mostDrawn = 64
)

// bases returns the objects to which labels, annotations and names are added: the samples, or else a small object, one
// with many fields, and some that differ. One of them has the words of the hints in its containers or data.
func (f *finder) bases() (list []any) {
	random := rand.New(rand.NewPCG(uint64(f.Seed), 4))
	add := func(doc any) {
		doc = f.selected(doc)
		if len(list) < mostBases && f.inputs.valid(doc) && !slices.ContainsFunc(list, func(other any) bool { return tree.Equal(doc, other) }) {
			list = append(list, doc)
		}
	}
	n := len(f.inputs.samples)
	for i := range min(n, 2) {
		add(f.inputs.samples[i])
	}
	var first, rich any
	if n > 0 {
		rich = f.inputs.samples[0]
	} else {
		first, rich = f.inputs.object(random, 0), f.inputs.object(random, 1)
		add(first)
	}
	var drawn []any
	for i := max(n, 1) + 1; len(drawn) < mostDrawn; i++ {
		drawn = append(drawn, f.inputs.object(random, i))
	}
	drawn = f.diverse(append(drawn, withSettings(rich)...))
	if len(edits.ContainerLists(rich)) == 0 && n == 0 && len(drawn) > 0 {
		rich, drawn = drawn[0], drawn[1:] // only Pods have a prepared object with many fields
	}
	add(rich)
	add(worded(rich, f.hints.Words))
	if first != nil {
		add(worded(first, f.hints.Words)) // a webhook may act only on containers without the fields of the rich ones
	}
	for _, doc := range drawn {
		add(doc)
	}
	return list
}

// withSettings returns the document with each known setting of users.
func withSettings(doc any) (list []any) {
	for _, setting := range slices.Concat(edits.NewSettings(doc), edits.OtherSettings(doc)) {
		next := doc
		for _, e := range setting {
			if changed, ok := e.Apply(next); ok {
				next = changed
			}
		}
		list = append(list, next)
	}
	return list
}

// diverse returns those valid documents that have fields or values which the documents before them lack, beginning with
// the document that has most.
func (f *finder) diverse(docs []any) (chosen []any) {
	seen, features := map[string]bool{}, make([][]string, len(docs))
	for i, doc := range docs {
		if f.inputs.valid(f.selected(doc)) {
			features[i] = featuresOf(doc)
		}
	}
	for len(chosen) < mostBases {
		best, most := -1, 0
		for i, list := range features {
			news := 0
			for _, feature := range list {
				if !seen[feature] {
					news++
				}
			}
			if news > most {
				best, most = i, news
			}
		}
		if best < 0 {
			return chosen
		}
		for _, feature := range features[best] {
			seen[feature] = true
		}
		chosen = append(chosen, docs[best])
	}
	return chosen
}

// featuresOf returns the fields of a document outside of its metadata, and the values of those that have a short text,
// such as the type of a Service.
func featuresOf(doc any) (list []string) {
	tree.Leaves(doc, func(p tree.Path, leaf any) {
		if len(p) == 0 || p[0].Name == "metadata" {
			return
		}
		field := fieldOf(p)
		list = append(list, field)
		if text, ok := leaf.(string); ok && len(text) <= shortText {
			list = append(list, field+"="+text)
		}
	})
	slices.Sort(list)
	return slices.Compact(list)
}

// shortText is the maximum length of a text that featuresOf takes for one of a few possible values.
const shortText = 16

// selected returns the document with the labels that the objectSelectors require, and without those that they exclude.
func (f *finder) selected(doc any) any {
	for _, w := range f.Webhooks {
		if w.ObjectSelector == nil {
			continue
		}
		for key, value := range w.ObjectSelector.MatchLabels {
			doc = put(doc, edits.Metadata.Member("labels").Member(key), value)
		}
		for _, e := range w.ObjectSelector.MatchExpressions {
			at := edits.Metadata.Member("labels").Member(e.Key)
			switch {
			case e.Operator == metav1.LabelSelectorOpIn && len(e.Values) > 0:
				doc = put(doc, at, e.Values[0])
			case e.Operator == metav1.LabelSelectorOpExists:
				doc = put(doc, at, "true")
			case e.Operator == metav1.LabelSelectorOpDoesNotExist:
				if next, ok := tree.Remove(doc, at); ok {
					doc = next
				}
			}
		}
	}
	return doc
}

// annotated returns the document with an annotation and, if the value permits it, a label for each key. A Pod template
// in the document gets them, too.
func annotated(doc any, keys []string, value string) any {
	places := []tree.Path{edits.Metadata}
	for _, containers := range edits.ContainerLists(doc) {
		if len(containers) > 2 && containers[len(containers)-2].Name == "spec" { // not a Pod's own spec
			places = append(places, containers[:len(containers)-2].Member("metadata"))
		}
	}
	isLabel := len(validation.IsValidLabelValue(value)) == 0
	for _, at := range places {
		doc = withNotes(doc, at.Member("annotations"), keys, value)
		if isLabel {
			doc = withNotes(doc, at.Member("labels"), keys, value)
		}
	}
	return doc
}

// withNotes returns the document with a value for each key in the map at a path.
func withNotes(doc any, at tree.Path, keys []string, value string) any {
	there, _ := tree.Get(doc, at)
	notes, _ := there.(map[string]any)
	next := make(map[string]any, len(notes)+len(keys))
	for key, value := range notes {
		next[key] = value
	}
	for _, key := range keys {
		next[key] = value
	}
	return put(doc, at, next)
}

// absent returns the keys that are neither labels nor annotations of a document, nor labels of a Pod template in it,
// which a selector may require.
func absent(doc any, keys []string) []string {
	known := map[string]bool{}
	places := []tree.Path{edits.Metadata}
	for _, containers := range edits.ContainerLists(doc) {
		if len(containers) > 2 {
			places = append(places, containers[:len(containers)-2].Member("metadata"))
		}
	}
	for _, at := range places {
		for _, name := range []string{"labels", "annotations"} {
			value, _ := tree.Get(doc, at.Member(name))
			notes, _ := value.(map[string]any)
			for key := range notes {
				known[key] = true
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(keys), func(key string) bool { return known[key] })
}

// mostWordContainers is the maximum number of containers that worded adds.
const mostWordContainers = 24

// usualVariables are environment variables that programs read by convention, so webhooks look for them: the proxies of
// curl, Go and Python, and the flags of Java.
var usualVariables = []string{"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "JAVA_TOOL_OPTIONS"}

var (
	repository = regexp.MustCompile(`^[a-z0-9]+(?:[._/:-]+[a-z0-9]+)*/?$`)
	dataKey    = regexp.MustCompile(`^[A-Za-z0-9._-]+$`)
)

// worded returns a document with words where webhooks look for them: as names and images of containers, as flags and
// variables of these, and as keys of data.
func worded(doc any, words []string) any {
	for _, containers := range edits.ContainerLists(doc) {
		value, _ := tree.Get(doc, containers)
		list, _ := value.([]any)
		if len(list) == 0 {
			continue
		}
		doc = put(doc, containers, append(slices.Clone(list), containersOf(list, words)...))
	}
	top, _ := doc.(map[string]any)
	if value, ok := map[any]string{"ConfigMap": "{}", "Secret": "e30="}[top["kind"]]; ok { // {}, in base64 for a Secret
		for _, word := range words {
			if dataKey.MatchString(word) {
				doc = put(doc, tree.Path{{Name: "data"}, {Name: word}}, value)
			}
		}
	}
	return doc
}

// containersOf returns a copy of the first container for each word that can be the name or the image of a container.
func containersOf(containers []any, words []string) (list []any) {
	var flags, variables []any
	for _, word := range words {
		if strings.HasPrefix(word, "-") {
			flags = append(flags, word)
		}
	}
	for _, word := range slices.Concat(usualVariables, words) {
		if isVariable(word) {
			variables = append(variables, map[string]any{"name": word, "value": "http://app.example.com:8080"})
		}
	}
	names := map[string]bool{}
	for _, c := range containers {
		name, _ := c.(map[string]any)["name"].(string)
		names[name] = true
	}
	for _, word := range append([]string{"app"}, words...) {
		image := strings.ToLower(word)
		if !repository.MatchString(image) || len(list) > mostWordContainers {
			continue
		}
		name := image
		if len(validation.IsDNS1123Label(name)) > 0 || names[name] {
			name = fmt.Sprintf("word-%d", len(list))
		}
		names[name] = true
		switch {
		case strings.HasSuffix(image, "/"):
			image += "app:1"
		case !strings.Contains(image, ":"):
			image += ":1"
		}
		c := tree.Clone(containers[0]).(map[string]any)
		c["name"], c["image"] = name, image
		delete(c, "ports") // names of ports are unique
		for member, more := range map[string][]any{"args": flags, "env": variables} {
			have, _ := c[member].([]any)
			c[member] = append(slices.Clone(have), more...)
		}
		list = append(list, c)
	}
	return list
}

func isVariable(word string) bool {
	return len(word) > 2 && word == strings.ToUpper(word) && strings.ContainsFunc(word, func(c rune) bool { return c >= 'A' && c <= 'Z' }) &&
		len(validation.IsEnvVarName(word)) == 0
}
