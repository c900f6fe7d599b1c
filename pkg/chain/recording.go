// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"encoding/json"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/apiserver/pkg/admission"
	mutatingplugin "k8s.io/apiserver/pkg/admission/plugin/webhook/mutating"
	validatingplugin "k8s.io/apiserver/pkg/admission/plugin/webhook/validating"
	auditinternal "k8s.io/apiserver/pkg/apis/audit"

	"github.com/admitkit/admitkit/pkg/chain/internal/inprocess"
)

// A call is a [Call] in progress, with data that is not part of the result.
type call struct {
	Call
	hook  *inprocess.Hook
	step  int // 1 in the second step of a deletion
	start time.Time
	err   error // transport error of the last attempt
	// patched means that the API server applied the patch of the response.
	patched, failedOpen bool
}

// A recording records the webhook calls and the audit annotations of one request.
type recording struct {
	mutating []*inprocess.Hook
	// beforeCall is called before each attempt to call a mutating webhook in round 0. reinvokes is called before round
	// 1 begins.
	beforeCall func(*inprocess.Hook)
	reinvokes  func()
	round      int
	step       int

	mu          sync.Mutex // validating webhooks are called concurrently
	calls       []*call
	open        map[*inprocess.Hook]*call // calls that have not ended
	annotations []Annotation
	seen        map[string]bool // keys of annotations
	failedOpen  bool            // a validating webhook failed open
}

// Begin records an attempt to send a body to a webhook.
func (r *recording) Begin(h *inprocess.Hook, body []byte) (end func(status int, answer []byte, err error)) {
	if h.Mutating && r.round == 0 {
		r.beforeCall(h)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.open[h]
	if c == nil {
		c = r.add(h)
		c.Request, c.start = body, time.Now()
	}
	c.Attempts++
	return func(status int, answer []byte, err error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		c.Status, c.Response, c.err = status, answer, err
		c.Duration = time.Since(c.start)
	}
}

// add adds a call. The caller holds mu.
func (r *recording) add(h *inprocess.Hook) *call {
	c := &call{hook: h, step: r.step, Call: Call{
		Configuration: h.Configuration, Webhook: h.GetName(), Mutating: h.Mutating, Round: r.round, Index: h.Index}}
	r.calls = append(r.calls, c)
	r.open[h] = c
	return c
}

// nextStep begins the second step of a Pod's deletion, in which the API server calls the webhooks again.
func (r *recording) nextStep() {
	clear(r.open)
	r.step = 1
}

// annotate records an annotation if its key is new, as the audit event does. Some annotations also report how a call
// ended.
func (r *recording) annotate(key, value string, level auditinternal.Level) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.seen[key] {
		r.seen[key] = true
		r.annotations = append(r.annotations, Annotation{Key: key, Value: value, Level: string(level)})
	}
	if index, ok := callIndex(key, mutatingplugin.MutationAuditAnnotationPrefix); ok {
		r.endMutation(index, value)
	} else if _, ok := callIndex(key, mutatingplugin.PatchAuditAnnotationPrefix); ok {
		r.last().patched = true
	} else if _, ok := callIndex(key, mutatingplugin.MutationAuditAnnotationFailedOpenKeyPrefix); ok {
		r.last().failedOpen = true
	} else if strings.HasPrefix(key, validatingplugin.ValidatingAuditAnnotationFailedOpenKeyPrefix) {
		r.failedOpen = true
	}
}

// endMutation records that a call of a mutating webhook has ended. If the call failed before its body was sent, Begin
// has not recorded it. Then endMutation adds the call.
func (r *recording) endMutation(index int, value string) {
	h := r.mutating[index]
	c := r.open[h]
	if c == nil {
		c = r.add(h)
	}
	delete(r.open, h)
	var a mutatingplugin.MutationAuditAnnotation
	if err := json.Unmarshal([]byte(value), &a); err == nil {
		c.Mutated = a.Mutated
	}
}

func (r *recording) last() *call { return r.calls[len(r.calls)-1] }

// callIndex returns the index in the key of an audit annotation. Such a key is prefix, followed by round_R_index_I.
func callIndex(key, prefix string) (int, bool) {
	rest, ok := strings.CutPrefix(key, prefix)
	if !ok {
		return 0, false
	}
	_, index, ok := strings.Cut(rest, "_index_")
	if !ok {
		return 0, false
	}
	i, err := strconv.Atoi(index)
	return i, err == nil
}

// recordedAttributes passes annotations and the start of a second round to a recording.
type recordedAttributes struct {
	admission.Attributes
	recording *recording
}

// AddAnnotation adds an audit annotation at level Metadata, and records it.
func (a *recordedAttributes) AddAnnotation(key, value string) error {
	return a.AddAnnotationWithLevel(key, value, auditinternal.LevelMetadata)
}

// AddAnnotationWithLevel adds an audit annotation, and records it.
func (a *recordedAttributes) AddAnnotationWithLevel(key, value string, level auditinternal.Level) error {
	if err := a.Attributes.AddAnnotationWithLevel(key, value, level); err != nil {
		return err
	}
	a.recording.annotate(key, value, level)
	return nil
}

// GetReinvocationContext returns a context that notifies the recording when the second round begins.
func (a *recordedAttributes) GetReinvocationContext() admission.ReinvocationContext {
	return recordedReinvocation{a.Attributes.GetReinvocationContext(), a.recording}
}

type recordedReinvocation struct {
	admission.ReinvocationContext
	recording *recording
}

// SetIsReinvoke records that the second round of mutating webhooks begins.
func (r recordedReinvocation) SetIsReinvoke() {
	r.recording.reinvokes()
	r.recording.round = 1
	r.ReinvocationContext.SetIsReinvoke()
}
