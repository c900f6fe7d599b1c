// SPDX-License-Identifier: Apache-2.0

// Package celcheck compiles the CEL expressions in the matchConditions of hooks when a program starts. Without it, the
// program notices a mistake only when the API server rejects the configuration.
//
//	hooks := …
//	return hooks, celcheck.Check(hooks...)
//
// The package links the API server's CEL code, which is large. Package webhook does not: a program that wants the check
// imports this package. Otherwise use admitkit lint or chain.New in a test.
package celcheck

import (
	"errors"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admitkit/admitkit/internal/celcondition"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// Check returns an error that joins a *field.Error for each expression that the API server would reject. The error has
// the name of the hook, the name of the matchCondition and the message of CEL. If the hooks have other errors, which
// webhook.Configurations returns, Check returns these.
//
// Check accepts what an API server of the linked version of k8s.io/apiserver accepts. An older API server may reject an
// expression with newer functions.
func Check(hooks ...*webhook.Hook) error {
	mutating, validating, err := webhook.Configurations(webhook.ConfigurationOptions{Name: "celcheck", URL: "https://127.0.0.1"}, hooks...)
	if err != nil {
		return err
	}
	var errs []error
	if mutating != nil {
		for _, w := range mutating.Webhooks {
			errs = append(errs, check(field.NewPath("mutating").Key(w.Name), w.MatchConditions)...)
		}
	}
	if validating != nil {
		for _, w := range validating.Webhooks {
			errs = append(errs, check(field.NewPath("validating").Key(w.Name), w.MatchConditions)...)
		}
	}
	return errors.Join(errs...)
}

// check compiles the conditions of a hook. An empty expression is an error of the registration.
func check(at *field.Path, list []admissionregistrationv1.MatchCondition) (errs []error) {
	for _, c := range list {
		if problem := celcondition.Problem(c.Expression); problem != "" {
			errs = append(errs, field.Invalid(at.Child("matchConditions").Key(c.Name).Child("expression"), c.Expression, problem))
		}
	}
	return errs
}
