// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"sort"
	"strings"

	"github.com/admitkit/admitkit/pkg/chain"
)

// A view is the result of a request, as a map from paths to values, both as text. It has no values that vary between
// runs.
type view map[string]string

// Patterns for the parts of a text that vary between runs.
var (
	uids      = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	generated = regexp.MustCompile(`(diff-[0-9]+)-[bcdfghjklmnpqrstvwxz2456789]{5}\b`)
	times     = regexp.MustCompile(`[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z`)
	timeouts  = regexp.MustCompile(`timeout=[0-9]+s`)
)

func normal(text string) string {
	text = uids.ReplaceAllString(text, "<uid>")
	text = generated.ReplaceAllString(text, "$1-<generated>")
	text = times.ReplaceAllString(text, "<time>")
	return timeouts.ReplaceAllString(text, "timeout=<timeout>")
}

func (v view) add(path string, value any) {
	switch value := value.(type) {
	case map[string]any:
		for key, member := range value {
			v.add(path+"."+key, member)
		}
		if len(value) == 0 {
			v[path] = "{}"
		}
	case []any:
		for i, element := range value {
			v.add(fmt.Sprintf("%s[%v]", path, place(path, i, element)), element)
		}
		if len(value) == 0 {
			v[path] = "[]"
		}
	case string:
		v[path] = normal(value)
	default:
		v[path] = fmt.Sprint(value)
	}
}

// place returns the key of a list element. That is its index, except for managedFields, which are sorted by time: there
// it is made of the manager, operation, subresource and API version.
func place(path string, i int, element any) any {
	entry, ok := element.(map[string]any)
	if !ok || !strings.HasSuffix(path, ".managedFields") {
		return i
	}
	return fmt.Sprintf("%v %v %v %v", entry["manager"], entry["operation"], entry["subresource"], entry["apiVersion"])
}

// addJSON adds the values of a JSON document, or the text if raw is not JSON.
func (v view) addJSON(path string, raw []byte) {
	if raw == nil {
		return
	}
	var value any
	if json.Unmarshal(raw, &value) != nil {
		v[path] = normal(string(raw))
		return
	}
	v.add(path, value)
}

// notOfWebhooks are the prefixes of those audit annotations that come from other parts of the API server.
var notOfWebhooks = []string{"authorization.k8s.io/", "apiserver.latency.k8s.io/", "pod-security.kubernetes.io/"}

// addWarnings adds each warning together with the previous one, so that compare checks their order. It ignores the
// order if there are several validating webhooks, because they are called concurrently. It also ignores the positions
// of warnings about values of built-in types.
func (v view) addWarnings(r *chain.Result) {
	validating := 0
	for _, c := range r.Calls {
		if !c.Mutating {
			validating++
		}
	}
	before := "first"
	for _, w := range r.Warnings {
		w = normal(w)
		if validating > 1 {
			before = "shown"
		}
		v["warning "+w] = before
		if !aboutValue.MatchString(w) {
			before = w
		}
	}
}

// aboutValue matches the start of a warning about a value of a built-in type. Such a warning begins with the path of a
// field.
var aboutValue = regexp.MustCompile(`^(template\.)?spec\.`)

// raced reports whether several validating webhooks rejected the request. The API server reports
// only the first response.
func raced(r *chain.Result) bool {
	n := 0
	for _, c := range r.Calls {
		if !c.Mutating && (c.Effect == chain.Denied || c.Effect == chain.Failed) {
			n++
		}
	}
	return n > 1
}

func viewOf(r *chain.Result) view {
	v := view{}
	v.addJSON("object", r.Object)
	if r.Rejection != nil && !raced(r) {
		v.addJSON("rejection", encode(r.Rejection))
	}
	v.addWarnings(r)
	for _, a := range r.Annotations {
		if slices.ContainsFunc(notOfWebhooks, func(prefix string) bool { return strings.HasPrefix(a.Key, prefix) }) {
			continue
		}
		v.addJSON("annotations "+a.Level+" "+a.Key, []byte(a.Value))
	}
	for i, c := range r.Calls {
		at := fmt.Sprintf("calls[%d]", i)
		v[at] = fmt.Sprintf("%s/%s mutating=%t round %d index %d attempts %d", c.Configuration, c.Webhook, c.Mutating, c.Round, c.Index, c.Attempts)
		v[at+".outcome"] = fmt.Sprintf("%s status=%d mutated=%t", c.Effect, c.Status, c.Mutated)
		if c.Effect != chain.FailedOpen && (c.Mutating || !raced(r)) { // otherwise the client does not get the message
			v[at+".error"] = normal(c.Error)
		}
		v.addJSON(at+".request", c.Request)
		v.addJSON(at+".response", c.Response)
		v.addJSON(at+".patch", c.Patch)
	}
	for i, w := range r.Webhooks {
		v[fmt.Sprintf("webhooks[%d]", i)] = fmt.Sprintf("%s/%s mutating=%t index %d called=%t %s: %s", w.Configuration, w.Webhook, w.Mutating, w.Index, w.Called, w.Reason, normal(w.Detail))
	}
	return v
}

// A difference is a path with different values in the two engines. "" stands for a missing value.
type difference struct{ path, process, server string }

func (d difference) String() string {
	return fmt.Sprintf("%s\n   in process %s\n   server     %s", d.path, d.process, d.server)
}

func compare(process, server view) []difference {
	var all []difference
	for path, p := range process {
		if s := server[path]; p != s {
			all = append(all, difference{path, p, s})
		}
	}
	for path, s := range server {
		if _, ok := process[path]; !ok && s != "" {
			all = append(all, difference{path, "", s})
		}
	}
	sort.Slice(all, func(i, j int) bool { return all[i].path < all[j].path })
	return all
}
