// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// If the program has no hooks of a kind any more, every webhook of that configuration is unwanted. Like other unwanted
// webhooks, they are removed only after the new ones are enforced.

// openOne sets Ignore on our webhooks in a configuration without hooks, because some replicas no longer serve
// them.
func (i *Installer) openOne(ctx context.Context, w wanted, m *memory) error {
	found, err := i.find(ctx, w)
	if err != nil || len(found.obsolete(w)) == 0 {
		return err
	}
	m.open = true
	err = i.cluster.apply(ctx, w.sort, i.opened(w, found), i.o.Force)
	if missingRight(err) != "" { // RBAC grants it only for the kinds of the hooks
		i.logger.Error(err, "webhooks that are not in this program any more keep their failurePolicy until they are removed, so calls of them fail where no replica of the older program answers")
		return nil
	}
	return err
}

// opened returns our webhooks with Ignore. Its marker does not confirm the version that it came from.
func (i *Installer) opened(w wanted, found live) *unstructured.Unstructured {
	object := nothing(w, found)
	annotations := map[string]string{}
	maps.Copy(annotations, i.o.Configuration.Annotations)
	annotations[ownerAnnotation] = i.o.owner()
	if i.o.Revision > 0 {
		annotations[revisionAnnotation] = strconv.FormatInt(i.o.Revision, 10)
	}
	object.SetAnnotations(annotations)
	object.SetLabels(i.o.Configuration.Labels)
	var list []any
	for _, index := range found.obsolete(w) {
		entry := runtime.DeepCopyJSON(found.entries[index])
		if nameOf(entry) == markerName(w.name) {
			entry["objectSelector"] = markerSelector([]any{labelValue(w.sort, w.name, installed, "")})
		} else {
			entry["failurePolicy"] = string(admissionregistrationv1.Ignore)
		}
		list = append(list, entry)
	}
	object.Object["webhooks"] = list
	return object
}

// retire withdraws a configuration without hooks and reports whether there was one. A mutating one may be removed when no
// answering API server knows the validating one any more.
func (i *Installer) retire(ctx context.Context, w wanted) (bool, error) {
	if w.object != nil {
		return false, nil
	}
	found, err := i.find(ctx, w)
	if err != nil || len(found.obsolete(w)) == 0 {
		return false, err
	}
	if err := i.untilUnchanged(ctx, func() error { return i.withdraw(ctx, w) }); err != nil {
		return false, err
	}
	if w.sort == mutating {
		return true, nil
	}
	return true, i.settles(ctx, orderPatience, i.gone()[1:])
}

// retireAll removes the unwanted webhooks after the others are enforced, the validating ones first.
func (i *Installer) retireAll(ctx context.Context, patience time.Duration) error {
	var errs []error
	var gone []question
	for n, w := range slices.Backward(i.wanted) {
		if w.object != nil {
			errs = append(errs, i.untilUnchanged(ctx, func() error {
				_, err := i.cutObsolete(ctx, w)
				return err
			}))
			continue
		}
		took, err := i.retire(ctx, w)
		if errs = append(errs, err); took {
			q := i.gone()[n]
			q.unsure = true
			gone = append(gone, q)
		}
	}
	if err := errors.Join(errs...); err != nil || len(gone) == 0 {
		return err
	}
	ctx, cancel := bounded(ctx, patience)
	defer cancel()
	return i.await(ctx, gone)
}
