// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/admitkit/admitkit/pkg/patch"
)

// These are the prefixes of the API server's own audit annotations.
const (
	mutationPrefix       = "mutation.webhook.admission.k8s.io/"
	patchPrefix          = "patch.webhook.admission.k8s.io/"
	openMutationPrefix   = "failed-open." + mutationPrefix
	openValidatingPrefix = "failed-open.validating.webhook.admission.k8s.io/"
	latencyPrefix        = "apiserver.latency.k8s.io/"
	certificateInfix     = ".invalid-cert.kubernetes.io/"
)

// A hook identifies a webhook. For a validating webhook, configuration is empty, because the log does not name it.
type hook struct{ configuration, name string }

func (h hook) String() string {
	if h.configuration == "" || h.configuration == h.name {
		return h.name
	}
	return h.configuration + "/" + h.name
}

// is reports whether name is the name of h, with or without its configuration.
func (h hook) is(name string) bool { return name == h.name || name == h.configuration+"/"+h.name }

// A call is one call of a mutating webhook, as the audit annotations of a request record it.
type call struct {
	round, index int
	hook         hook
	mutated      bool // value of the API server's mutation annotation
	failedOpen   bool
	patched      bool // the log has a patch with operations
	patch        patch.Patch
}

// A note is one of two things: an audit annotation NAME/KEY that a webhook added, or a warning of the API server about
// the serving certificate of a host. The fields about and key are NAME and KEY for an annotation, and the kind of
// problem and the host for a warning.
type note struct{ about, key, text string }

// annotate sets the fields of q that come from the audit annotations of the event.
func (q *request) annotate(annotations []byte) {
	at := map[string]*call{} // by "round_R_index_I"
	opened, patches := map[string]bool{}, map[string]string{}
	_ = each(annotations, func(key string, value []byte) { // split has checked the syntax
		if place, ok := strings.CutPrefix(key, mutationPrefix); ok {
			c := mutation(place, text(value))
			if c == nil {
				q.unread++
			} else if at[place] == nil {
				at[place] = c
				q.calls = append(q.calls, c)
			}
		} else if place, ok := strings.CutPrefix(key, patchPrefix); ok {
			patches[place] = text(value)
		} else if place, ok := strings.CutPrefix(key, openMutationPrefix); ok {
			opened[place] = true
		} else if strings.HasPrefix(key, openValidatingPrefix) {
			q.openValidating = append(q.openValidating, text(value))
		} else if key == auditedKey {
			q.audited(text(value))
		} else if layer, ok := strings.CutPrefix(key, latencyPrefix); ok {
			q.layer(layer, text(value))
		} else if kind, host, ok := strings.Cut(key, certificateInfix); ok {
			q.certificates = append(q.certificates, note{kind, host, text(value)})
		} else if name, own, ok := strings.Cut(key, "/"); ok && !reserved([]byte(name)) {
			q.own = append(q.own, note{name, own, text(value)})
		}
	})
	for place, c := range at {
		c.failedOpen = opened[place]
		if value, ok := patches[place]; ok && !c.applied(value) {
			q.unread++
		}
	}
	for _, place := range slices.Concat(slices.Collect(maps.Keys(patches)), slices.Collect(maps.Keys(opened))) {
		if at[place] == nil { // the log does not record this call, so its webhook is unknown
			q.unread++
		}
	}
	slices.SortFunc(q.calls, func(a, b *call) int { return cmp.Or(a.round-b.round, a.index-b.index) })
}

// mutation parses the annotation that records a call. place is its position, as in "round_0_index_2". It returns nil
// for a malformed annotation.
func mutation(place, value string) *call {
	round, index, ok := strings.Cut(strings.TrimPrefix(place, "round_"), "_index_")
	r, err1 := strconv.Atoi(round)
	i, err2 := strconv.Atoi(index)
	var recorded struct {
		Configuration, Webhook string
		Mutated                bool
	}
	if !ok || err1 != nil || err2 != nil || json.Unmarshal([]byte(value), &recorded) != nil || recorded.Webhook == "" {
		return nil
	}
	return &call{round: r, index: i, hook: hook{recorded.Configuration, recorded.Webhook}, mutated: recorded.Mutated}
}

// applied sets the patch of a call to the patch in value, the text of a patch annotation. It keeps operations of
// unknown types, because the API server has applied the patch. The rules ignore such operations. applied returns false
// for a malformed annotation.
func (c *call) applied(value string) bool {
	var recorded struct{ Patch patch.Patch }
	if json.Unmarshal([]byte(value), &recorded) != nil {
		return false
	}
	if len(recorded.Patch) > 0 {
		c.patched, c.patch = true, recorded.Patch
	}
	return true
}

func (q *request) layer(name, value string) {
	d, err := time.ParseDuration(value)
	if err != nil {
		return
	}
	switch name {
	case "mutating-webhook":
		q.mutating = d
	case "validating-webhook":
		q.validating = d
	}
}

// reserved reports whether annotations with this domain belong to Kubernetes. A domain that ends in .static.k8s.io is
// the name of a static webhook, so it is not reserved.
func reserved(domain []byte) bool {
	for _, own := range []string{"k8s.io", "kubernetes.io"} {
		if rest, ok := bytes.CutSuffix(domain, []byte(own)); ok && (len(rest) == 0 || rest[len(rest)-1] == '.') {
			return !bytes.HasSuffix(rest, []byte(".static."))
		}
	}
	return false
}

// onlyPolicies reports whether the request has a trace of a policy, but none of a webhook.
func (q *request) onlyPolicies() bool {
	_, denied := q.denial()
	return (denied || len(q.policies) > 0) && q.silent()
}

// silent reports whether the request has no trace of a webhook.
func (q *request) silent() bool {
	return len(q.calls)+len(q.openValidating)+len(q.own)+len(q.certificates) == 0 && q.mutating+q.validating == 0 && q.rejected().kind == ""
}

// A rejection says which webhook rejected a request, and why. It is the zero value if no webhook did.
type rejection struct {
	kind string // "denied", "failed" or "no dry run"
	name string // of the webhook
	by   *call  // the mutating call that may have rejected the request, nil for a validating webhook
}

// rejected finds the webhook that rejected the request. The log names this webhook only in the message of the API
// server.
func (q *request) rejected() rejection {
	if q.code < 400 {
		return rejection{}
	}
	var r rejection
	if quoted, ok := strings.CutPrefix(q.message, "admission webhook "); ok {
		name, rest := unquote(quoted)
		switch {
		case strings.HasPrefix(rest, " denied the request"):
			r = rejection{kind: "denied", name: name}
		case rest == " does not support dry run":
			r = rejection{kind: "no dry run", name: name}
		}
	} else if quoted, ok := strings.CutPrefix(q.message, "Internal error occurred: failed calling webhook "); ok {
		if name, rest := unquote(quoted); rest != "" {
			r = rejection{kind: "failed", name: name}
		}
	}
	if last := q.last(); last != nil && last.hook.name == r.name && !last.mutated && !last.patched && !last.failedOpen && len(q.openValidating) == 0 {
		r.by = last
	}
	return r
}

// last returns the last call of a mutating webhook, or nil.
func (q *request) last() *call {
	if len(q.calls) == 0 {
		return nil
	}
	return q.calls[len(q.calls)-1]
}

// unquote decodes the quoted Go string at the beginning of text, and returns it and the rest of text. Both are empty if
// text does not begin with a quoted string.
func unquote(text string) (name, rest string) {
	quoted, err := strconv.QuotedPrefix(text)
	if err != nil {
		return "", ""
	}
	name, _ = strconv.Unquote(quoted) // cannot fail after QuotedPrefix
	return name, text[len(quoted):]
}
