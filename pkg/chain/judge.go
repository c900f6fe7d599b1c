// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"errors"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/admitkit/admitkit/pkg/chain/internal/inmemory"
	"github.com/admitkit/admitkit/pkg/chain/internal/inprocess"
)

// judge sets the effect of each call. The audit annotations say which calls failed open. Any other failed call is the
// cause of err, the error that ended the run.
func judge(calls []*call, validatingFailedOpen bool, err error, realHosts *strings.Replacer) {
	for i, c := range calls {
		c.Effect = Allowed
		c.Patch = inprocess.ResponsePatch(c.Response)
		switch {
		case c.failedOpen:
			c.Effect, c.Error = FailedOpen, c.failure()
		case err == nil && (c.Mutating || !validatingFailedOpen):
		case c.Mutating && i < len(calls)-1:
		default:
			c.judgeBy(err)
		}
		if cause := c.panicCause(); cause != "" && c.Error != "" {
			c.Error += " (" + cause + ")"
		}
		c.Error = realHosts.Replace(c.Error)
	}
}

// judgeBy sets the effect of a call that can be the cause of the rejection err.
func (c *call) judgeBy(err error) {
	name := c.hook.GetName()
	v := inprocess.Verify(c.exchange())
	switch {
	case v.Denied:
		c.Effect, c.Error = Denied, v.Message
	case err != nil && strings.Contains(err.Error(), `failed calling webhook "`+name+`"`):
		c.Effect = Failed
		_, c.Error, _ = strings.Cut(err.Error(), `failed calling webhook "`+name+`": `)
	case v.Problem != "" && !c.Mutating && *c.hook.GetFailurePolicy() == admissionregistrationv1.Ignore:
		c.Effect, c.Error = FailedOpen, v.Problem
	case v.Problem != "":
		c.Effect, c.Error = Failed, v.Problem
	case c.Mutating && v.Operations > 0 && !c.patched && err != nil:
		c.Effect, c.Error = Failed, err.Error()
	}
}

// failure returns the error of a call that failed open.
func (c *call) failure() string {
	if v := inprocess.Verify(c.exchange()); v.Problem != "" {
		return v.Problem
	}
	return "the response cannot be used"
}

// exchange returns the last attempt of the call.
func (c *call) exchange() inprocess.Exchange {
	return inprocess.Exchange{Webhook: c.hook.GetName(), Mutating: c.Mutating, Attempts: c.Attempts, Request: c.Request, Response: c.Response, Status: c.Status, Err: c.err}
}

// panicCause describes the panic of a handler in this process, or is empty.
func (c *call) panicCause() string {
	if p := (inmemory.PanicError{}); errors.As(c.err, &p) {
		return p.Cause()
	}
	return ""
}
