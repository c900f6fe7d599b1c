// SPDX-License-Identifier: Apache-2.0

package gallery

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A comparison contains what the original and the hooks decided about a request.
type comparison struct {
	*testing.T
	request        *request
	onServers      bool // the results are the answers of API servers
	original, ours result
}

// A difference is an intended difference between the results of the hooks and of their original.
type difference struct {
	name, reason string
	// is reports whether this difference alone explains why the two results differ, except for their advice.
	is func(c *comparison) bool
	// advice reports whether this difference explains why the advice differs. If it is nil, the advice must be equal.
	advice func(original, ours advice) bool
	used   int
}

// explained returns the first difference in the list that explains the comparison, or nil.
func explained(list []*difference, c *comparison) *difference {
	for _, d := range list {
		advised := c.original.advice.equal(c.ours.advice) || d.advice != nil && d.advice(c.original.advice, c.ours.advice)
		if advised && d.is(c) {
			return d
		}
	}
	return nil
}

// deniedWith403 declares that the hook denies with 403 if the original returns an error without a status.
func deniedWith403() *difference {
	return &difference{
		name:   "code of a denial",
		reason: "the original returns an error without a status, which the API server answers as 500; the hook denies with 403 Forbidden",
		is: func(c *comparison) bool {
			original, ours := c.original, c.ours
			return original.verdict == failed && original.reason == "" && original.message != "" &&
				ours.verdict == denied && ours.code == http.StatusForbidden && ours.reason == "Forbidden" &&
				slices.Equal(original.fields(), ours.fields()) && (len(ours.fields()) > 1 || ours.message == original.message)
		},
	}
}

// failsToRead declares that the hook fails if the API server does not return an object, while the original denies.
func failsToRead() *difference {
	return &difference{
		name:   "failed reads",
		reason: "if the hook cannot read an object, the failurePolicy decides about the request",
		is: func(c *comparison) bool {
			return c.original.verdict == denied && strings.Contains(c.original.message, errUnreadable.Error()) &&
				c.ours.verdict == failed && strings.Contains(c.ours.message, errUnreadable.Error()) && !c.ours.panicked()
		},
	}
}

// failsInItsWords declares that the text and the reason of a failure may differ, but not its code. The text of the hook
// must contain the cause that the original names. It must also contain the namespace, and one of the annotations if the
// Namespace can be read.
func failsInItsWords(annotations ...string) *difference {
	return &difference{
		name:   "text of a failure",
		reason: "the API server reports the failure of a webhook in its own words, with the reason InternalError",
		is: func(c *comparison) bool {
			if c.original.verdict != failed || c.ours.verdict != failed || c.original.code != c.ours.code || c.ours.panicked() {
				return false
			}
			cause, isAnnotation := c.cause()
			names := func(text string) bool { return strings.Contains(c.ours.message, text) }
			return names(c.request.namespace) && names(cause) && (!isAnnotation || slices.ContainsFunc(annotations, names))
		},
		// PodSecurity annotates the cause, and the message of the hook contains it: the answer to a failed call has no annotations.
		advice: func(original, ours advice) bool {
			return ours.equal(advice{}) && original.equal(advice{annotations: map[string]string{"error": original.annotations["error"]}})
		},
	}
}

// cause returns why the original failed, and whether the cause is an annotation of the Namespace.
func (c *comparison) cause() (cause string, isAnnotation bool) {
	switch name := c.request.namespace; {
	case name == unreadable: // PodNodeSelector reports it as missing
		return errNoAnswer.Error(), false
	case c.original.advice.annotations["error"] != "": // PodSecurity sets it
		return c.original.advice.annotations["error"], false
	case c.original.message == "Internal error occurred: namespace "+name+" does not exist":
		return "does not exist", false
	}
	return strings.TrimPrefix(c.original.message, "Internal error occurred: "), true
}

// panicked reports whether the result is the failure of a hook that panicked.
func (r result) panicked() bool { return strings.Contains(r.message, "panic") }

var fieldPaths = regexp.MustCompile(`\b(spec|metadata|affinity)(\.\w+(\[\w+\])?)+`)

// fields returns the field paths in the message.
func (r result) fields() []string { return fieldPaths.FindAllString(r.message, -1) }
