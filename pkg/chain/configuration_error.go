// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"errors"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admitkit/admitkit/pkg/chain/internal/configuration"
)

// OverlappingResources is the Origin of a [field.Error] about resources of a rule that overlap,
// such as pods/* and pods/status.
const OverlappingResources = configuration.OverlappingResources

// A ConfigurationError is one field of a webhook configuration that the API server would reject.
type ConfigurationError struct {
	// Kind is MutatingWebhookConfiguration or ValidatingWebhookConfiguration. Name is the name of
	// the configuration.
	Kind, Name string
	// Path is the field within the configuration, such as webhooks[0].name.
	Path string
	// Err is the error. Its Field is the path with the kind and the name in front.
	Err *field.Error
}

// Error returns the message of Err.
func (e *ConfigurationError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *ConfigurationError) Unwrap() error { return e.Err }

// ConfigurationErrors returns the configuration errors in an error of [New] or [Connect].
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

// configurationErrors adds the kind and the name of a configuration to its errors.
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
