// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// A store reads and changes the stored configurations during one call of an Installer's method. Such a call can take
// hours, so the store remembers which configurations existed. If a user removes them during the call, the store returns
// ErrRemoved, and they are not installed again.
type store struct {
	*installation
	seen           map[sort]bool // configurations that existed
	takesNamespace bool          // also accept an owner that matches by sameNamespace
}

// attempts bounds the retries of a change that conflicts with another client, such as another replica or the injector of
// caBundles.
const attempts = 20

// untilUnchanged repeats change while it returns errChanged, up to the limit of attempts.
func (s *store) untilUnchanged(ctx context.Context, change func() error) error {
	for n := 1; ; n++ {
		err := change()
		if n == attempts || !errors.Is(err, errChanged) || !sleep(ctx, s.o.Interval/10) {
			return err
		}
	}
}

// cutObsolete removes our unwanted webhooks and returns the result. An apply without them is not enough: if another
// manager owns a field of such a webhook, for example the caBundle, the webhook would remain with only that field.
func (s *store) cutObsolete(ctx context.Context, w wanted) (live, error) {
	found, err := s.find(ctx, w)
	if err != nil {
		return found, err
	}
	indexes := found.obsolete(w)
	if len(indexes) == 0 {
		return found, nil
	}
	if err := s.cluster.cut(ctx, w.sort, found, indexes); err != nil {
		return found, err
	}
	return s.find(ctx, w)
}

// find returns the stored configuration. It fails if the stored one is newer or belongs to another installation.
func (s *store) find(ctx context.Context, w wanted) (live, error) {
	object, err := s.cluster.read(ctx, w.sort)
	if err != nil {
		return live{}, err
	}
	found := readLive(object)
	switch own := s.o.owner(); {
	case found.owner != "" && found.owner != own && !(s.takesNamespace && sameNamespace(found.owner, own)) && !s.o.Force:
		return live{}, fmt.Errorf("%s %s was installed for %s, but this program is for %s: choose another Configuration.Name, or set Force if one replaces the other",
			kindOf[w.sort], w.name, describeOwner(found.owner), describeOwner(own))
	case s.o.Revision > 0 && found.revision > s.o.Revision:
		return live{}, fmt.Errorf("%s %s has revision %d, but this program has revision %d: %w", kindOf[w.sort], w.name, found.revision, s.o.Revision, ErrSuperseded)
	}
	return found, nil
}

// missed returns ErrRemoved if the configuration w was removed during this call and the other one is missing, too. If
// the other one is stored, a version of the program without hooks of this kind may have removed w, which is not an
// error.
func (s *store) missed(ctx context.Context, w wanted, found live) error {
	if !s.seen[w.sort] || found.has(markerName(w.name)) {
		return nil
	}
	for _, other := range s.wanted {
		if found, err := s.find(ctx, other); err != nil || found.has(markerName(w.name)) {
			return err
		}
	}
	return fmt.Errorf("%s %s: %w", kindOf[w.sort], w.name, ErrRemoved)
}

// remember records which configurations exist when the call begins.
func (s *store) remember(ctx context.Context) error {
	for _, w := range s.wanted {
		found, err := s.find(ctx, w)
		if err != nil {
			return err
		}
		if found.has(markerName(w.name)) {
			s.saw(w)
		}
	}
	return nil
}

// left returns the configurations that still have our webhooks, in the order in which to remove them.
func (s *store) left(ctx context.Context) ([]wanted, error) {
	var list []wanted
	for _, w := range s.wanted {
		found, err := s.find(ctx, w)
		if err != nil {
			return nil, err
		}
		if len(found.obsolete(wanted{})) > 0 {
			list = append(list, w)
		}
	}
	slices.Reverse(list)
	return list, nil
}

// withdraw removes our webhooks from a configuration. If the configuration has no other webhooks,
// withdraw deletes it.
func (s *store) withdraw(ctx context.Context, w wanted) error {
	found, err := s.find(ctx, w)
	if err != nil {
		return err
	}
	own := found.obsolete(wanted{})
	switch {
	case len(own) == 0:
		return nil
	case found.deleting: // stored and enforced until its finalizers are gone
		s.logger.Info("the configuration is being deleted and waits for its finalizers: its webhooks are removed", "kind", kindOf[w.sort], "finalizers", found.finalizers)
	case len(own) == len(found.entries):
		return s.cluster.remove(ctx, w.sort, found)
	}
	kept := found.kept()
	if found, err = s.cutObsolete(ctx, wanted{sort: w.sort, name: w.name}); err != nil {
		if kept != "" {
			err = fmt.Errorf("%s %s still exists%s: %w", kindOf[w.sort], w.name, kept, err)
		}
		return err
	}
	return s.cluster.apply(ctx, w.sort, nothing(w, found), s.o.Force) // releases annotations and labels
}

func (s *store) saw(w wanted) {
	if s.seen == nil {
		s.seen = map[sort]bool{}
	}
	s.seen[w.sort] = true
}
