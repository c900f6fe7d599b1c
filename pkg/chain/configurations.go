// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"cmp"
	"errors"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admitkit/admitkit/pkg/chain/internal/configuration"
)

// configurations are the webhook configurations of [Webhooks] as the API server would store them, sorted by name.
type configurations struct {
	mutating   []*admissionregistrationv1.MutatingWebhookConfiguration
	validating []*admissionregistrationv1.ValidatingWebhookConfiguration
}

// completed returns copies of the configurations with the API server's defaults. The error lists everything that the API
// server would reject.
func (w Webhooks) completed() (configurations, error) {
	var all configurations
	var errs []error
	for _, c := range w.Mutating {
		c = c.DeepCopy()
		for i := range c.Webhooks {
			configuration.DefaultMutating(&c.Webhooks[i], w.Handlers[c.Webhooks[i].Name])
		}
		errs = append(errs, configurationErrors(configuration.MutatingKind, c.Name, configuration.ValidateMutating(c))...)
		all.mutating = append(all.mutating, c)
	}
	for _, c := range w.Validating {
		c = c.DeepCopy()
		for i := range c.Webhooks {
			configuration.DefaultValidating(&c.Webhooks[i], w.Handlers[c.Webhooks[i].Name])
		}
		errs = append(errs, configurationErrors(configuration.ValidatingKind, c.Name, configuration.ValidateValidating(c))...)
		all.validating = append(all.validating, c)
	}
	for _, err := range append(all.duplicates(), w.unused()...) {
		errs = append(errs, err)
	}
	// The API server calls webhooks in the order of the names of their configurations.
	slices.SortStableFunc(all.mutating, func(a, b *admissionregistrationv1.MutatingWebhookConfiguration) int {
		return cmp.Compare(a.Name, b.Name)
	})
	slices.SortStableFunc(all.validating, func(a, b *admissionregistrationv1.ValidatingWebhookConfiguration) int {
		return cmp.Compare(a.Name, b.Name)
	})
	if err := aggregate(errs); err != nil {
		return configurations{}, err
	}
	return all, nil
}

// unused returns an error for each handler whose name is not the name of a webhook.
func (w Webhooks) unused() field.ErrorList {
	names := map[string]bool{}
	for _, c := range w.Mutating {
		for _, h := range c.Webhooks {
			names[h.Name] = true
		}
	}
	for _, c := range w.Validating {
		for _, h := range c.Webhooks {
			names[h.Name] = true
		}
	}
	var errs field.ErrorList
	for name := range w.Handlers {
		if !names[name] {
			errs = append(errs, field.NotFound(field.NewPath("handlers"), name))
		}
	}
	return errs
}

// duplicates returns an error for each configuration that has the name of an earlier one of its kind.
func (c configurations) duplicates() field.ErrorList {
	var errs field.ErrorList
	seen := map[string]bool{}
	for _, m := range c.mutating {
		if seen["mutating/"+m.Name] {
			errs = append(errs, field.Duplicate(field.NewPath("mutating"), m.Name))
		}
		seen["mutating/"+m.Name] = true
	}
	for _, v := range c.validating {
		if seen["validating/"+v.Name] {
			errs = append(errs, field.Duplicate(field.NewPath("validating"), v.Name))
		}
		seen["validating/"+v.Name] = true
	}
	return errs
}

// OverlappingResources is the Origin of a [field.Error] about overlapping resources in a rule, such as pods/* and
// pods/status.
const OverlappingResources = configuration.OverlappingResources

// A ConfigurationError says why the API server would reject one field of a webhook configuration.
type ConfigurationError struct {
	// Kind is MutatingWebhookConfiguration or ValidatingWebhookConfiguration. Name is the name of
	// the configuration.
	Kind, Name string
	// Path is the field within the configuration, such as webhooks[0].name.
	Path string
	// Err is the error. Its Field is Path with the kind and the name of the configuration in front.
	Err *field.Error
}

// Error returns the message of Err.
func (e *ConfigurationError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *ConfigurationError) Unwrap() error { return e.Err }

// ConfigurationErrors returns the configuration errors in an error returned by [New] or [Connect]. It returns nil for
// other errors.
func ConfigurationErrors(err error) []*ConfigurationError {
	var found []*ConfigurationError
	var all utilerrors.Aggregate
	if !errors.As(err, &all) {
		return nil
	}
	for _, one := range all.Errors() {
		var e *ConfigurationError
		if errors.As(one, &e) {
			found = append(found, e)
		}
	}
	return found
}

// configurationErrors wraps each error of a configuration in a [ConfigurationError] with the kind and the name of that
// configuration.
func configurationErrors(kind, name string, errs field.ErrorList) []error {
	root := configuration.RootPath(kind, name).String() + "."
	var all []error
	for _, err := range errs {
		all = append(all, &ConfigurationError{Kind: kind, Name: name, Path: err.Field[len(root):], Err: err})
	}
	return all
}

// aggregate joins errors without repeating a message. It returns nil if there are none.
func aggregate(errs []error) error {
	seen := sets.New[string]()
	var unique []error
	for _, err := range errs {
		if !seen.Has(err.Error()) {
			seen.Insert(err.Error())
			unique = append(unique, err)
		}
	}
	if len(unique) == 0 {
		return nil
	}
	return utilerrors.NewAggregate(unique)
}
