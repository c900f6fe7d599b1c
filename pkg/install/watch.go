// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"slices"
	"time"
)

// watchInterval is the interval of Watch's checks. It is not shorter, because many replicas of many programs may watch.
const watchInterval = time.Minute

// Watch checks the configurations every minute until ctx ends, and then returns nil. Call it after [Installer.Run]: if a
// user deletes or replaces the webhooks, the program is still healthy, but the API server no longer calls it. Watch
// sets the [Status] and logs its changes. It does not repair anything, because the deletion may be
// intended.
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
			i.logger.Info("the webhooks are again installed as this program defines them")
		case Removed:
			i.logger.Error(ErrRemoved, "webhooks of this program are no longer registered, so requests bypass them: restart the program to install them")
		case FailingOpen:
			i.logger.Error(nil, "webhooks of this program have failurePolicy Ignore now, so requests pass if their calls fail: restart the program to restore the failurePolicy")
		case Superseded:
			i.logger.Info("another program, or another version of this one, installs under this name")
		}
	}
	return nil
}

// look reads the stored configurations and returns the phase that they are in.
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
