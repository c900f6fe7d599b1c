// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"

	"k8s.io/apiserver/pkg/admission"
	mutatingplugin "k8s.io/apiserver/pkg/admission/plugin/webhook/mutating"
	validatingplugin "k8s.io/apiserver/pkg/admission/plugin/webhook/validating"
	auditinternal "k8s.io/apiserver/pkg/apis/audit"

	"github.com/admitkit/admitkit/pkg/chain/internal/inmemory"
)

// A call is one webhook call of a run, with the state that the run needs until it ends.
type call struct {
	Call
	hook  *hook
	run   *run
	step  int // of a deletion
	start time.Time
	err   error // what the transport said of the last attempt
	// patched: the API server applied the patch of the answer.
	patched, failedOpen bool
}

// began records that a body is sent to the hook: a new call or, while one goes on, an attempt
// more.
func (r *run) began(h *hook, body []byte) *call {
	if h.mutating && r.round == 0 {
		r.decide(h.index + 1) // while its own patch is still to come
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.open[h]
	if c == nil {
		c = r.add(h)
		c.Request, c.start = body, time.Now()
	}
	c.Attempts++
	return c
}

// add is called with the lock held.
func (r *run) add(h *hook) *call {
	c := &call{hook: h, run: r, step: r.step, Call: Call{
		Configuration: h.configuration, Webhook: h.GetName(), Mutating: h.mutating, Round: r.round, Index: h.index}}
	r.calls = append(r.calls, c)
	r.open[h] = c
	return c
}

func (c *call) ended(status int, answer []byte, err error) {
	c.run.mu.Lock()
	defer c.run.mu.Unlock()
	c.Status, c.Response, c.err = status, answer, err
	c.Duration = time.Since(c.start)
}

// attributes are those of the API server that tell the run what it is not told otherwise.
type attributes struct {
	admission.Attributes
	run *run
}

func (a *attributes) AddAnnotation(key, value string) error {
	return a.AddAnnotationWithLevel(key, value, auditinternal.LevelMetadata)
}

func (a *attributes) AddAnnotationWithLevel(key, value string, level auditinternal.Level) error {
	if err := a.Attributes.AddAnnotationWithLevel(key, value, level); err != nil {
		return err
	}
	a.run.annotated(key, value, level)
	return nil
}

func (a *attributes) GetReinvocationContext() admission.ReinvocationContext {
	return reinvocation{a.Attributes.GetReinvocationContext(), a.run}
}

// reinvocation tells the run when the second round begins.
type reinvocation struct {
	admission.ReinvocationContext
	run *run
}

func (r reinvocation) SetIsReinvoke() {
	r.run.decide(len(r.run.chain.mutating))
	r.run.round = 1
	r.ReinvocationContext.SetIsReinvoke()
}

// annotated keeps what is new, as the audit event does: the first value of a key wins.
func (r *run) annotated(key, value string, level auditinternal.Level) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.seen[key] {
		r.seen[key] = true
		r.annotations = append(r.annotations, Annotation{Key: key, Value: value, Level: string(level)})
	}
	if index, ok := callIndex(key, mutatingplugin.MutationAuditAnnotationPrefix); ok {
		r.mutationOver(index, value)
	} else if _, ok := callIndex(key, mutatingplugin.PatchAuditAnnotationPrefix); ok {
		r.last().patched = true
	} else if _, ok := callIndex(key, mutatingplugin.MutationAuditAnnotationFailedOpenKeyPrefix); ok {
		r.last().failedOpen = true
	} else if strings.HasPrefix(key, validatingplugin.ValidatingAuditAnnotationFailedOpenKeyPrefix) {
		r.failedOpen = true
	}
}

// mutationOver ends a call of a mutating webhook, even one that could not be sent.
func (r *run) mutationOver(index int, value string) {
	h := r.chain.mutating[index]
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

func (r *run) last() *call { return r.calls[len(r.calls)-1] }

// callIndex is I of <prefix>round_R_index_I.
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

// why is what the transport knows better than the API server's text.
func (c *call) why() string {
	if p := (inmemory.PanicError{}); errors.As(c.err, &p) {
		return p.Cause()
	}
	return ""
}
