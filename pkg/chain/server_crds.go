// SPDX-License-Identifier: Apache-2.0

package chain

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

// installCRDs stores the definitions and waits until their resources are served.
func (s *serverEngine) installCRDs(ctx context.Context) error {
	for _, crd := range s.crds {
		crd = crd.DeepCopy()
		crd.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
		metav1.SetMetaDataAnnotation(&crd.ObjectMeta, engineKey, s.id)
		if err := s.api.write(ctx, http.MethodPost, crdsPath, crd); err != nil {
			return err
		}
		s.installed = append(s.installed, crd.Name)
		if err := s.awaitServed(ctx, crd); err != nil {
			return err
		}
	}
	return nil
}

// awaitServed waits for each version to be listed and answered: discovery and the handlers of
// the API server learn of a definition one after the other.
func (s *serverEngine) awaitServed(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) error {
	for _, version := range crd.Spec.Versions {
		if !version.Served {
			continue
		}
		root := rootOf(metav1.GroupVersion{Group: crd.Spec.Group, Version: version.Name})
		var last error
		err := wait.PollUntilContextCancel(ctx, 10*time.Millisecond, true, func(ctx context.Context) (bool, error) {
			var list metav1.APIResourceList
			if last = s.api.get(ctx, root, &list); last != nil {
				return false, waitFor(last)
			}
			if _, ok := lookUp(list, root, crd.Spec.Names.Plural, crd.Spec.Names.Plural); !ok {
				return false, nil
			}
			last = s.api.get(ctx, root+"/"+crd.Spec.Names.Plural, nil)
			return last == nil, waitFor(last)
		})
		if err != nil {
			return fmt.Errorf("%s in version %s is not served: %w", crd.Name, version.Name, errors.Join(err, last))
		}
	}
	return nil
}

// waitFor returns an error that waiting does not help against.
func waitFor(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsServiceUnavailable(err) || apierrors.IsTooManyRequests(err) {
		return nil
	}
	return err
}

func (s *serverEngine) removeCRDs(ctx context.Context) error {
	var errs []error
	for _, name := range s.installed {
		errs = append(errs, s.removeMade(ctx, crdsPath+"/"+name))
	}
	return errors.Join(errs...)
}
