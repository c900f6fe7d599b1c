// SPDX-License-Identifier: Apache-2.0

package realserver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
)

// definitions creates the CustomResourceDefinitions of an engine.
type definitions struct {
	engineID  string
	api       *API
	cleaner   *cleaner
	installed []string // names
}

// install stores the definitions and waits until their resources are served.
func (d *definitions) install(ctx context.Context, crds []*apiextensionsv1.CustomResourceDefinition) error {
	for _, crd := range crds {
		crd = crd.DeepCopy()
		crd.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
		metav1.SetMetaDataAnnotation(&crd.ObjectMeta, EngineKey, d.engineID)
		if err := d.api.Write(ctx, http.MethodPost, CRDsPath, crd); err != nil {
			return err
		}
		d.installed = append(d.installed, crd.Name)
		if err := d.awaitServed(ctx, crd); err != nil {
			return err
		}
	}
	return nil
}

// awaitServed waits until each version appears in discovery and can be listed. The API server updates discovery and
// its handlers one after the other.
func (d *definitions) awaitServed(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) error {
	for _, version := range crd.Spec.Versions {
		if !version.Served {
			continue
		}
		root := rootOf(metav1.GroupVersion{Group: crd.Spec.Group, Version: version.Name})
		var last error
		err := wait.PollUntilContextCancel(ctx, 10*time.Millisecond, true, func(ctx context.Context) (bool, error) {
			var list metav1.APIResourceList
			if last = d.api.Get(ctx, root, &list); last != nil {
				return false, waitFor(last)
			}
			if _, ok := lookUp(list, root, crd.Spec.Names.Plural, crd.Spec.Names.Plural); !ok {
				return false, nil
			}
			last = d.api.Get(ctx, root+"/"+crd.Spec.Names.Plural, nil)
			return last == nil, waitFor(last)
		})
		if err != nil {
			return fmt.Errorf("%s in version %s is not served: %w", crd.Name, version.Name, errors.Join(err, last))
		}
	}
	return nil
}

// waitFor returns nil for a temporary error, and other errors unchanged.
func waitFor(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsServiceUnavailable(err) || apierrors.IsTooManyRequests(err) {
		return nil
	}
	return err
}

// removeAll deletes the definitions that install stored.
func (d *definitions) removeAll(ctx context.Context) error {
	var errs []error
	for _, name := range d.installed {
		errs = append(errs, d.cleaner.removeCreated(ctx, CRDsPath+"/"+name))
	}
	return errors.Join(errs...)
}
