// SPDX-License-Identifier: Apache-2.0

package celcheck_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admitkit/admitkit/pkg/celcheck"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// hooks returns a mutating and a validating hook with these expressions, whose conditions are named a, b and so on.
func hooks(expressions ...string) []*webhook.Hook {
	var conditions []admissionregistrationv1.MatchCondition
	for i, e := range expressions {
		conditions = append(conditions, admissionregistrationv1.MatchCondition{Name: string(rune('a' + i)), Expression: e})
	}
	rules := webhook.Rules(webhook.OnCreate("", "v1", "pods"))
	handle := func(context.Context, *webhook.Request[corev1.Pod]) error { return nil }
	return []*webhook.Hook{
		webhook.Mutating(admissionregistrationv1.MutatingWebhook{Name: "set.example.com", Rules: rules, MatchConditions: conditions}, handle),
		webhook.Validating(admissionregistrationv1.ValidatingWebhook{Name: "check.example.com", Rules: rules, MatchConditions: conditions}, handle),
	}
}

func TestCheck(t *testing.T) {
	for reason, in := range map[string]struct {
		expressions []string
		want        []string // parts of the errors, none for valid expressions
	}{
		"no conditions":           {},
		"valid":                   {expressions: []string{"has(object.spec.hostNetwork)", "request.userInfo.username != 'a'", " true "}},
		"the authorizer":          {expressions: []string{"authorizer.group('').resource('pods').check('get').allowed()"}},
		"optional fields":         {expressions: []string{"object.?metadata.?labels != oldObject.?metadata.?labels"}},
		"it does not parse":       {expressions: []string{"object.spec ==="}, want: []string{"matchConditions[a].expression", "Syntax error"}},
		"no such variable":        {expressions: []string{"true", "objekt.spec.x"}, want: []string{"matchConditions[b].expression", "undeclared reference to 'objekt'"}},
		"it does not return bool": {expressions: []string{"'yes'"}, want: []string{"must evaluate to bool"}},
		"a field of the request":  {expressions: []string{"request.nope == 1"}, want: []string{"undefined field 'nope'"}},
	} {
		t.Run(reason, func(t *testing.T) {
			err := celcheck.Check(hooks(in.expressions...)...)
			if (err != nil) != (len(in.want) > 0) {
				t.Fatalf("got %v", err)
			}
			if err == nil {
				return
			}
			for _, want := range append(in.want, "mutating[set.example.com].", "validating[check.example.com].") {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got %v, want %q", err, want)
				}
			}
			var of *field.Error
			if !errors.As(err, &of) {
				t.Errorf("%v is not a *field.Error", err)
			}
		})
	}
}

// TestAllErrorsAreReported checks that one condition does not hide the errors of another one.
func TestAllErrorsAreReported(t *testing.T) {
	err := celcheck.Check(hooks("a", "true", "b")[:1]...)
	var joined interface{ Unwrap() []error }
	if !errors.As(err, &joined) || len(joined.Unwrap()) != 2 {
		t.Errorf("got %v", err)
	}
}

// TestOtherErrors checks that errors of a registration are not hidden.
func TestOtherErrors(t *testing.T) {
	if err := celcheck.Check(webhook.Validating[corev1.Pod](admissionregistrationv1.ValidatingWebhook{Name: "a"}, nil)); err == nil {
		t.Error("want an error")
	}
	if err := celcheck.Check(); err != nil {
		t.Error(err)
	}
}
