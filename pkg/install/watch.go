// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// watchInterval is how often Watch looks: somebody is to hear of it before long, and several
// programs with several replicas each look.
const watchInterval = time.Minute

// Watch looks at the configurations every minute until ctx is done, and then returns nil. It is for
// after [Installer.Run]: a program whose webhooks somebody deletes or replaces is as healthy as
// before, and nobody calls it. What Watch finds is the [Status], and is logged when it changes. It
// changes nothing: who deleted them may have meant it.
func (i *Installer) Watch(ctx context.Context) error {
	for sleep(ctx, watchInterval) {
		before := i.Status().Phase
		now, err := i.look(ctx)
		if ctx.Err() != nil {
			break
		}
		i.status.waits(err)
		if err != nil || now == before {
			continue
		}
		i.status.enters(now)
		switch now {
		case Installed:
			i.logger.Info("the webhooks are installed as this program wants them again")
		case Removed:
			i.logger.Error(ErrRemoved, "webhooks of this program are not registered any more, so requests pass unseen: restart the program to install them")
		case FailingOpen:
			i.logger.Error(nil, "webhooks of this program have failurePolicy Ignore now, so that their failures let requests pass: restart the program to install them as they should be")
		case Superseded:
			i.logger.Info("another program, or another version of this one, installs under this name")
		}
	}
	return nil
}

// look returns which phase that is which the cluster has.
func (i *Installer) look(ctx context.Context) (Phase, error) {
	at := Installed
	for _, w := range i.wanted {
		if w.object == nil {
			continue
		}
		object, err := i.cluster.read(ctx, w.sort)
		if err != nil {
			return "", err
		}
		found := readLive(object)
		switch {
		case !found.has(markerName(w.name)):
			return Removed, nil
		case !w.isVersionOf(object):
			return Superseded, nil
		case slices.ContainsFunc(webhooks(w.object), func(entry map[string]any) bool { return !found.has(nameOf(entry)) }):
			return Removed, nil
		case w.opens(found):
			at = FailingOpen
		}
	}
	return at, nil
}

// isVersionOf tells whether it was this very version that was stored, by the stages that its marker
// answers for.
func (w wanted) isVersionOf(object *unstructured.Unstructured) bool {
	for _, entry := range webhooks(object) {
		if nameOf(entry) != markerName(w.name) {
			continue
		}
		expressions, _, _ := unstructured.NestedSlice(entry, "objectSelector", "matchExpressions")
		return slices.ContainsFunc(expressions, func(expression any) bool {
			fields, _ := expression.(map[string]any)
			values, _, _ := unstructured.NestedStringSlice(fields, "values")
			return slices.Contains(values, labelValue(w.sort, w.name, applied, w.version))
		})
	}
	return false
}
