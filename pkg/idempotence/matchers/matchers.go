// SPDX-License-Identifier: Apache-2.0

// Package matchers has Gomega matchers for package idempotence:
//
//	Expect(idempotence.Handler(registration, newHandler)).To(matchers.BeIdempotent(idempotence.Options{Samples: samples}))
package matchers

import (
	"context"
	"fmt"
	"strings"

	"github.com/onsi/gomega/types"

	"github.com/admitkit/admitkit/pkg/idempotence"
)

// BeIdempotent succeeds for an [idempotence.Subject] that is safe to call again: no law fails, and enough cases were
// decided. It stores failing cases only if Options.Store is set.
func BeIdempotent(options idempotence.Options) types.GomegaMatcher {
	return BeIdempotentWithContext(context.Background(), options)
}

// BeIdempotentWithContext is like BeIdempotent. The run ends with ctx, such as a SpecContext of Ginkgo.
func BeIdempotentWithContext(ctx context.Context, options idempotence.Options) types.GomegaMatcher {
	return &idempotent{ctx: ctx, options: options}
}

type idempotent struct {
	ctx     context.Context
	options idempotence.Options
	report  *idempotence.Report
}

// Match runs the harness on the subject. It returns an error if the run cannot decide whether the subject passes.
func (m *idempotent) Match(actual any) (bool, error) {
	subject, ok := actual.(idempotence.Subject)
	if !ok {
		return false, fmt.Errorf("BeIdempotent expects an idempotence.Subject, such as idempotence.Handler returns, not a %T", actual)
	}
	var err error
	if m.report, err = idempotence.Run(m.ctx, subject, m.options); err != nil {
		return false, err
	}
	if m.report.OK() && len(m.report.Incomplete) > 0 {
		return false, fmt.Errorf("cannot tell whether %s is idempotent: %s", m.names(), m.report.Texts(m.report.Incomplete))
	}
	return m.report.OK(), nil
}

func (m *idempotent) names() string { return strings.Join(m.report.Webhooks, ", ") }

// FailureMessage returns the report of a subject that fails a law.
func (m *idempotent) FailureMessage(any) string {
	return "Expected " + m.names() + " to be idempotent\n\n" + m.text()
}

// NegatedFailureMessage returns the report of a subject that passes all laws.
func (m *idempotent) NegatedFailureMessage(any) string {
	return "Expected " + m.names() + " not to be idempotent\n\n" + m.text()
}

func (m *idempotent) text() string {
	var text strings.Builder
	_ = m.report.WriteText(&text, false)
	return text.String()
}
