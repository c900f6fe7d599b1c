// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Apply stores the configurations by server-side apply with the field manager "admitkit-install". It keeps what other
// managers set in them. It then removes webhooks that it applied earlier and that are no longer among the hooks.
// Without FailOpenFirst every webhook has the failurePolicy of its registration; with it, see that option.
//
// Apply needs no running server and waits for none. It returns as soon as the API server has stored the
// configurations; [Installer.Wait] waits until they are enforced. Between the mutating and the validating webhooks it
// gives the API server a moment to notice the mutating ones. An error names the object and what to do.
func (i *Installer) Apply(ctx context.Context) error {
	return i.status.told(i.apply(ctx, &memory{}))
}

func (i *Installer) apply(ctx context.Context, m *memory) error {
	i.status.begins()
	if err := i.checkNamespace(ctx); err != nil {
		return err
	}
	p := clearing
	if i.o.FailOpenFirst {
		p = opening
	}
	if err := i.applyAll(ctx, p, m); err != nil {
		return err
	}
	i.status.stored(m.open)
	return nil
}

// checkNamespace returns an error if the webhook's namespace does not exist, because configurations for it would block
// requests that no server answers. It returns nil if the namespace cannot be read.
func (i *Installer) checkNamespace(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if problem := namespaceProblem(i.o.namespace(), i.cluster.ask(ctx, noMarker)); problem != nil {
		return fmt.Errorf("nothing is installed: %w", problem)
	}
	return nil
}

// applyAll applies the configurations, unless one of them is newer or belongs to another installation. A stored
// configuration of a kind without hooks gets Ignore with the others, or is removed with the unwanted webhooks.
func (i *Installer) applyAll(ctx context.Context, p phase, m *memory) error {
	if err := i.findAll(ctx); err != nil {
		return err
	}
	m.open = false
	return i.applyInOrder(ctx, p, m)
}

// attempts bounds the retries of a change that conflicts with another client, such as another replica or the injector of
// caBundles.
const attempts = 20

// untilUnchanged is the backoff between two attempts.
func (i *Installer) untilUnchanged(ctx context.Context, change func() error) error {
	for n := 1; ; n++ {
		err := change()
		if n == attempts || !errors.Is(err, errChanged) || !sleep(ctx, i.o.Interval/10) {
			return err
		}
	}
}

func (i *Installer) applyOne(ctx context.Context, w wanted, p phase, m *memory) error {
	found, err := i.find(ctx, w)
	if err != nil {
		return err
	}
	if err := i.missed(ctx, w, found, m); err != nil {
		return err
	}
	if p == clearing && len(found.obsolete(w)) > 0 {
		if err := i.store(ctx, w, found, p, m); err != nil {
			return err
		}
		if found, err = i.cutObsolete(ctx, w); err != nil {
			return err
		}
	}
	// The resourceVersion makes the apply fail if the stored object has changed.
	if untrusted := found.untrusted(w); i.o.FailOpenFirst && p == closing && len(untrusted) > 0 {
		return fmt.Errorf("%s %s: %w: %s", kindOf[w.sort], w.name, errUntrusted, strings.Join(untrusted, ", "))
	}
	return i.store(ctx, w, found, p, m)
}

var errUntrusted = errors.New("webhooks do not have the caBundle of the marker yet, so calls to them would fail")

func (i *Installer) store(ctx context.Context, w wanted, found live, p phase, m *memory) error {
	err := i.cluster.apply(ctx, w.sort, w.at(found, p), i.o.Force)
	if err == nil {
		m.saw(w)
		m.open = m.open || p == opening && w.opens(found)
	}
	return err
}

// cutObsolete removes our unwanted webhooks and returns the result. An apply without them would not do: if another manager
// owns a field of such a webhook, for example the caBundle, the webhook would remain with only that field.
func (i *Installer) cutObsolete(ctx context.Context, w wanted) (live, error) {
	found, err := i.find(ctx, w)
	if err != nil {
		return found, err
	}
	indexes := found.obsolete(w)
	if len(indexes) == 0 {
		return found, nil
	}
	if err := i.cluster.cut(ctx, w.sort, found, indexes); err != nil {
		return found, err
	}
	return i.find(ctx, w)
}

// find returns the stored configuration. It fails if that is newer or belongs to another installation.
func (i *Installer) find(ctx context.Context, w wanted) (live, error) {
	object, err := i.cluster.read(ctx, w.sort)
	if err != nil {
		return live{}, err
	}
	found := readLive(object)
	switch own := i.o.owner(); {
	case found.owner != "" && found.owner != own && !(i.removes && sameNamespace(found.owner, own)) && !i.o.Force:
		return live{}, fmt.Errorf("%s %s was installed for %s, and this is for %s: choose another Name of the configuration options, or set Force if the one replaces the other",
			kindOf[w.sort], w.name, describeOwner(found.owner), describeOwner(own))
	case i.o.Revision > 0 && found.revision > i.o.Revision:
		return live{}, fmt.Errorf("%s %s has revision %d, this is %d: %w", kindOf[w.sort], w.name, found.revision, i.o.Revision, ErrSuperseded)
	}
	return found, nil
}

// findAll fails if a configuration is newer or belongs to another installation. A missing one is no error.
func (i *Installer) findAll(ctx context.Context) error {
	complete := true
	for _, w := range i.wanted {
		found, err := i.find(ctx, w)
		if err != nil {
			return err
		}
		complete = complete && (w.object == nil || !slices.ContainsFunc(webhooks(w.object), func(entry map[string]any) bool { return !found.has(nameOf(entry)) }))
	}
	if !complete {
		i.status.enters(Installing)
	}
	return nil
}
