// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/admitkit/admitkit/pkg/certs/internal/kube"
)

// A fakeCluster is an API server in memory with resource versions and conflicts. It remembers every
// caBundle of each target, because a slow API server may still use an earlier one.
type fakeCluster struct {
	mu      sync.Mutex
	version int
	secret  kube.Secret
	targets map[string]*kube.TargetState
	past    map[string][]pastBundle // the caBundles that the first entry has had, by target
	note    func(format string, args ...any)
}

type pastBundle struct {
	since  time.Time
	bundle []byte
	spoilt bool // written by a client that is not a source
	parsed []*x509.Certificate
}

func newFakeCluster(targets ...Target) *fakeCluster {
	f := &fakeCluster{targets: map[string]*kube.TargetState{}, past: map[string][]pastBundle{}, note: func(string, ...any) {}}
	for _, t := range targets {
		f.createTarget(t, nil)
	}
	return f
}

func (f *fakeCluster) bump() string {
	f.version++
	return strconv.Itoa(f.version)
}

func (f *fakeCluster) deleteTarget(t Target) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.targets, t.String())
}

func (f *fakeCluster) createTarget(t Target, bundle []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.targets[t.String()] = &kube.TargetState{Version: f.bump(), Entries: []kube.Entry{{Name: "a", Bundle: bundle}, {Name: "b", Bundle: bundle}}}
	f.past[t.String()] = append(f.past[t.String()], pastBundle{wallClock(), bundle, true, parseBundle(bundle)})
	f.note("a client writes %s: %s", t, idsOf(bundle))
}

// setSecret replaces the data of the Secret, as a client with the permission can. nil deletes the Secret.
func (f *fakeCluster) setSecret(data map[string][]byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.secret = kube.Secret{}
	if data != nil {
		f.secret = kube.Secret{Version: f.bump(), Data: maps.Clone(data)}
	}
	f.note("a client writes the Secret: %s", describe(f.secret.Data))
}

func (f *fakeCluster) data() map[string][]byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.secret.Data)
}

// bundleAt returns the caBundle of a target at an earlier time, which an API server with a delay still uses.
func (f *fakeCluster) bundleAt(t Target, at time.Time) []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	var bundle []byte
	for _, p := range f.past[t.String()] {
		if p.since.After(at) {
			break
		}
		bundle = p.bundle
	}
	return bundle
}

// views returns the caBundles of a target that an API server may still use if it learns of changes within lag.
func (f *fakeCluster) views(t Target, lag time.Duration) []pastBundle {
	f.mu.Lock()
	defer f.mu.Unlock()
	all, now := f.past[t.String()], wallClock()
	for i := len(all) - 1; i >= 0; i-- {
		if !all[i].since.After(now.Add(-lag)) {
			return slices.Clone(all[i:])
		}
	}
	return slices.Clone(all)
}

// describe returns a summary of the state in the Secret's data, for the log of a failed test. It identifies each CA by
// the beginning of its fingerprint.
func describe(data map[string][]byte) string {
	s, err := decodeState(data)
	if err != nil {
		return err.Error()
	}
	text := fmt.Sprintf("generation %d", s.generation)
	for what, a := range map[string]*authority{"signing": s.signing, "next": s.next} {
		if a != nil {
			text += fmt.Sprintf(", %s %.4s", what, a.id())
		}
	}
	for _, r := range s.retiring {
		text += fmt.Sprintf(", retiring %.4s until %s %s", fingerprint(r.cert), r.until.Format(time.DateTime), r.target)
	}
	for _, r := range s.retired {
		text += fmt.Sprintf(", retired %.4s", r.id)
	}
	return text
}

func idsOf(bundle []byte) string {
	text := "CAs"
	for _, c := range parseBundle(bundle) {
		text += fmt.Sprintf(" %.4s", fingerprint(c))
	}
	return text
}

func (f *fakeCluster) ReadSecret(context.Context) (kube.Secret, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return kube.Secret{Version: f.secret.Version, Data: maps.Clone(f.secret.Data), Closed: f.secret.Closed}, nil
}

func (f *fakeCluster) WriteSecret(_ context.Context, s kube.Secret) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s.Version != f.secret.Version {
		return kube.ErrConflict
	}
	f.secret = kube.Secret{Version: f.bump(), Data: maps.Clone(s.Data)}
	f.note("the Secret is written: %s", describe(s.Data))
	return nil
}

func (f *fakeCluster) ReadTarget(_ context.Context, t kube.Target) (kube.TargetState, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	st, ok := f.targets[t.String()]
	if !ok {
		return kube.TargetState{}, fmt.Errorf("%s %w", t, kube.ErrNoTarget)
	}
	return kube.TargetState{Version: st.Version, Written: st.Written, Entries: slices.Clone(st.Entries)}, nil
}

func (f *fakeCluster) WriteTarget(_ context.Context, t kube.Target, read kube.TargetState, bundle []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	st, ok := f.targets[t.String()]
	if !ok || st.Version != read.Version {
		return kube.ErrConflict
	}
	st.Version, st.Written = f.bump(), wallClock()
	for i := range st.Entries {
		st.Entries[i].Bundle = bundle
	}
	f.past[t.String()] = append(f.past[t.String()], pastBundle{wallClock(), bundle, false, parseBundle(bundle)})
	f.note("%s is written: %s", t, idsOf(bundle))
	return nil
}

func (f *fakeCluster) Ahead() time.Duration { return 0 }

func (f *fakeCluster) Watch(ctx context.Context, _ []kube.Target, _ func()) { <-ctx.Done() }

// A lagging cluster waits before and after each request. Some requests fail, either without an effect or after they took
// effect.
type lagging struct {
	cluster
	random *rand.Rand
	mu     sync.Mutex
	most   time.Duration
	faults int                  // one of this many calls fails; 0 means none
	pauses int                  // one of this many writes waits for half an hour, like a suspended process; 0 means none
	clock  func() time.Duration // what Ahead returns
}

func (l *lagging) Ahead() time.Duration {
	if l.clock == nil {
		return 0
	}
	return l.clock()
}

var errFault = errors.New("the API server is away")

func (l *lagging) lag(ctx context.Context) error {
	l.mu.Lock()
	d, fault := time.Duration(l.random.Int64N(int64(l.most)+1)), l.faults > 0 && l.random.IntN(l.faults) == 0
	l.mu.Unlock()
	if !pause(ctx, d) {
		return ctx.Err()
	}
	if fault {
		return errFault
	}
	return nil
}

func (l *lagging) ReadSecret(ctx context.Context) (kube.Secret, error) {
	if err := l.lag(ctx); err != nil {
		return kube.Secret{}, err
	}
	s, err := l.cluster.ReadSecret(ctx)
	return s, errors.Join(err, l.lag(ctx))
}

func (l *lagging) WriteSecret(ctx context.Context, s kube.Secret) error {
	if err := l.lag(ctx); err != nil {
		return err
	}
	return errors.Join(l.cluster.WriteSecret(ctx, s), l.lag(ctx))
}

func (l *lagging) ReadTarget(ctx context.Context, t kube.Target) (kube.TargetState, error) {
	if err := l.lag(ctx); err != nil {
		return kube.TargetState{}, err
	}
	s, err := l.cluster.ReadTarget(ctx, t)
	return s, errors.Join(err, l.lag(ctx))
}

func (l *lagging) WriteTarget(ctx context.Context, t kube.Target, s kube.TargetState, bundle []byte) error {
	if err := l.lag(ctx); err != nil {
		return err
	}
	l.mu.Lock()
	stopped := l.pauses > 0 && l.random.IntN(l.pauses) == 0
	l.mu.Unlock()
	if stopped {
		elapse(35 * time.Minute)
	}
	return errors.Join(l.cluster.WriteTarget(ctx, t, s, bundle), l.lag(ctx))
}
