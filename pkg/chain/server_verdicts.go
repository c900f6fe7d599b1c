// SPDX-License-Identifier: Apache-2.0

package chain

// verdicts tell of each webhook whether it was called.
func (a *admissionRun) verdicts(r *Result) []Verdict {
	var verdicts []Verdict
	for _, t := range a.proxy.targets {
		v := Verdict{Configuration: t.configuration, Webhook: t.webhook, Mutating: t.mutating, Index: t.index}
		for _, c := range r.Calls {
			if c.Configuration == t.configuration && c.Webhook == t.webhook && c.Mutating == t.mutating {
				v.Called, v.Decision = true, Matches
			}
		}
		verdicts = append(verdicts, v)
	}
	return verdicts
}
