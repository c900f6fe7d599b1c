// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
)

// A limit is a known difference between the engines, with its reason.
type limit struct {
	name, reason string
	covers       func(c testCase, d difference) bool
}

var limits = []limit{
	{
		"storage", "only what is stored has a resourceVersion, and a new one between the steps of a deletion",
		func(c testCase, d difference) bool {
			return !c.request.DryRun && (d.path == "object.metadata.resourceVersion" ||
				c.request.Operation == admissionv1.Delete && strings.HasSuffix(d.path, ".oldObject.metadata.resourceVersion"))
		},
	},
	{
		"conversion", "built-in types are not converted to other versions: the webhook for HorizontalPodAutoscalers in v1 is not called",
		func(c testCase, _ difference) bool { return c.kind == "autoscalers" && c.on("mc") },
	},
	{
		"warnings of validation", "the API server warns of values of built-in types that are valid, but odd",
		func(c testCase, d difference) bool {
			return c.kind != "widgets" && c.request.Operation != admissionv1.Delete && aboutValue.MatchString(strings.TrimPrefix(d.path, "warning "))
		},
	},
	{
		"text of validation", "built-in types are validated by the rules of the API server, not always in its words",
		func(c testCase, d difference) bool {
			return c.kind != "widgets" && (d.path == "rejection.message" && strings.Contains(d.server, " is invalid: ") && strings.Contains(d.process, " is invalid: ") ||
				strings.HasPrefix(d.path, "rejection.details.causes[") && !strings.Contains(d.process+d.server, "webhook"))
		},
	},
}

func (c *tally) declared(t testCase, d difference) bool {
	for _, l := range limits {
		if l.covers(t, d) {
			c.mu.Lock()
			defer c.mu.Unlock()
			if c.used == nil {
				c.used = map[string]int{}
			}
			c.used[l.name]++
			return true
		}
	}
	return false
}
