// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admitkit/admitkit/pkg/webhook"
)

// A laggard is an API server that enforces a configuration only some time after it is stored. Mutating configurations take
// longer than validating ones.
type laggard struct {
	*fakeCluster
	delay map[sort]time.Duration
	known map[sort]bool // the enforced kinds
	log   []string      // the kinds in the order in which their enforcement began and ended
	// notYet is the time at which a server starts. Earlier calls fail.
	notYet time.Time
}

func newLaggard(t *testing.T, c *fakeCluster) *laggard {
	l := &laggard{fakeCluster: c, delay: map[sort]time.Duration{mutating: 3 * time.Second, validating: time.Second}, known: map[sort]bool{}}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		changed := map[sort]time.Time{}
		for sleep(ctx, 10*time.Millisecond) {
			l.mu.Lock()
			for _, s := range sorts {
				if there := l.stored[s] != nil; there == l.known[s] {
					delete(changed, s)
				} else if changed[s].IsZero() {
					changed[s] = time.Now()
				} else if time.Since(changed[s]) >= l.delay[s] {
					l.known[s] = there
					l.log = append(l.log, fmt.Sprint(s, " ", there))
				}
			}
			l.mu.Unlock()
		}
	}()
	t.Cleanup(func() { stop(); <-ended })
	return l
}

func (l *laggard) ask(_ context.Context, label string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range sorts {
		if object := l.stored[s]; l.known[s] && object == nil { // it was deleted, and its deletion is not yet enforced
			if label == labelValue(s, "hooks", installed, "") {
				return answerOf("enforced")
			}
		} else if l.known[s] {
			if text, _ := object.MarshalJSON(); strings.Contains(string(text), label) {
				if time.Now().Before(l.notYet) {
					return answerOf("unanswered")
				}
				return answerOf("enforced")
			}
		}
	}
	return nil
}

// A validating hook checks the change of a mutating hook. The API server must never enforce the validating hook without
// the mutating one, so that no unmutated object is denied.
func TestValidatingHookNotEnforcedWithoutMutatingHook(t *testing.T) {
	for _, first := range []string{"Apply", "Run"} {
		for _, openFirst := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				o := options()
				o.FailOpenFirst = openFirst
				i, c := newFake(t, o, denying("verify.example.com"), labelling("inject.example.com"))
				l := newLaggard(t, c)
				i.cluster = l
				do := i.Apply
				if first == "Run" {
					do = i.Run
				}
				if err := do(t.Context()); err != nil {
					t.Fatal(err)
				}
				if err := i.Wait(t.Context()); err != nil {
					t.Fatal(err)
				}
				if err := i.Remove(t.Context()); err != nil {
					t.Fatal(err)
				}
				if got := strings.Join(l.log, ", "); got != "mutating true, validating true, validating false, mutating false" {
					t.Errorf("%s: %s", first, got)
				}
			})
		}
	}
}

// A new version replaces a mutating hook and the validating hook that verifies it. It must add the mutating one first,
// and remove the validating one first.
func TestRemovedAndAddedHooksKeepOrder(t *testing.T) {
	for _, openFirst := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			o := options()
			o.FailOpenFirst = openFirst
			older, c := newFake(t, o, denying("old-verify.example.com"), labelling("old-inject.example.com"), denying("stays.example.com"), labelling("stays.example.com"))
			if err := older.Promote(t.Context()); err != nil {
				t.Fatal(err)
			}
			newer, _ := newFake(t, o, denying("new-verify.example.com"), labelling("new-inject.example.com"), denying("stays.example.com"), labelling("stays.example.com"))
			newer.cluster = c
			c.history = nil
			if err := errors.Join(newer.Apply(t.Context()), newer.Wait(t.Context()), newer.Promote(t.Context()), newer.Wait(t.Context())); err != nil {
				t.Fatal(err)
			}
			there := map[string]bool{"old-verify": true, "old-inject": true}
			var log []string
			for _, entries := range c.history {
				policies := policiesOf(entries)
				for _, name := range []string{"old-verify", "old-inject", "new-verify", "new-inject"} {
					// A changed hook is only in one of the two configurations, which its name identifies.
					if same := strings.Contains(policies, "verify") == strings.HasSuffix(name, "verify"); same && strings.Contains(policies, name) != there[name] {
						there[name] = !there[name]
						log = append(log, fmt.Sprint(name, " ", there[name]))
					}
				}
			}
			if got := strings.Join(log, ", "); got != "new-inject true, new-verify true, old-verify false, old-inject false" {
				t.Errorf("FailOpenFirst %v: %s", openFirst, got)
			}
		})
	}
}

// A delayed API server enforces each configuration as it was stored some time ago.
type delayed struct {
	*fakeCluster
	delay map[sort]time.Duration
	past  map[sort][]moment
}

type moment struct {
	at     time.Time
	stored *unstructured.Unstructured
}

// watch calls see with the enforced webhooks and their failure policies, every 10 ms until the test ends.
func (d *delayed) watch(t *testing.T, see func(mutates, validates string)) {
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			d.mu.Lock()
			for _, s := range sorts {
				d.past[s] = append(d.past[s], moment{time.Now(), d.stored[s]})
			}
			see(policiesOf(webhooks(d.enforced(mutating))), policiesOf(webhooks(d.enforced(validating))))
			d.mu.Unlock()
			if !sleep(ctx, 10*time.Millisecond) {
				return
			}
		}
	}()
	t.Cleanup(func() { stop(); <-ended })
}

// enforced returns the enforced configuration of a kind.
func (d *delayed) enforced(s sort) *unstructured.Unstructured {
	for _, then := range slices.Backward(d.past[s]) {
		if time.Since(then.at) >= d.delay[s] && then.stored != nil {
			return then.stored
		} else if time.Since(then.at) >= d.delay[s] {
			break
		}
	}
	return &unstructured.Unstructured{}
}

func (d *delayed) ask(_ context.Context, label string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, s := range sorts {
		if text, err := json.Marshal(d.enforced(s).Object); err != nil || strings.Contains(string(text), label) {
			return answerOf("enforced")
		}
	}
	return nil
}

// The last hook of a kind is removed, together with a hook of the other kind that depends on it. The validating hook
// must not be enforced with Fail without the mutating one.
func TestLastHookOfAKindIsRemovedInOrder(t *testing.T) {
	rows := map[string]func() *webhook.Hook{
		"only what mutates stays":   func() *webhook.Hook { return labelling("stays.example.com") },
		"only what validates stays": func() *webhook.Hook { return denying("stays.example.com") },
	}
	for why, stays := range rows {
		for _, openFirst := range []bool{true, false} {
			for _, delay := range []map[sort]time.Duration{{validating: 2 * time.Second}, {mutating: 2 * time.Second}} {
				synctest.Test(t, func(t *testing.T) {
					o := options()
					o.FailOpenFirst = openFirst
					older, c := newFake(t, o, denying("verify.example.com"), labelling("inject.example.com"), denying("stays.example.com"), labelling("stays.example.com"))
					d := &delayed{c, delay, map[sort][]moment{}}
					older.cluster = d
					wrong := 0
					d.watch(t, func(mutates, validates string) {
						// If the validating hook has Ignore, its server may have stopped already.
						if strings.Contains(validates, "verify Fail") && !strings.Contains(mutates, "inject") {
							wrong++
						}
					})
					if err := errors.Join(older.Promote(t.Context()), older.Wait(t.Context())); err != nil {
						t.Fatal(err)
					}
					newer, _ := newFake(t, o, stays())
					newer.cluster = d
					if err := errors.Join(newer.Apply(t.Context()), newer.Wait(t.Context()), newer.Promote(t.Context())); err != nil {
						t.Fatal(err)
					}
					sleep(t.Context(), 10*time.Second)
					d.mu.Lock()
					defer d.mu.Unlock()
					if len(c.stored) != 1 || c.log[len(c.log)-1] != "stays Fail" {
						t.Errorf("%s, FailOpenFirst %v: %d configurations, %s", why, openFirst, len(c.stored), c.log[len(c.log)-1])
					}
					if wrong > 0 {
						t.Errorf("%s, FailOpenFirst %v, delays %v: verified without being mutated %d times", why, openFirst, delay, wrong)
					}
				})
			}
		}
	}
}

// Run must store the validating webhooks only after calls to the mutating ones succeed. The two configurations may get
// their caBundles at different times, so otherwise an object could be validated without being mutated. Apply does not wait for calls, because it may run before the server
// starts.
func TestRunWaitsForServedMutatingHooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i, c := newFake(t, options(), denying("verify.example.com"), labelling("inject.example.com"))
		l := newLaggard(t, c)
		i.cluster, l.notYet = l, time.Now().Add(30*time.Second)
		began := time.Now()
		if err := i.Apply(t.Context()); err != nil || time.Since(began) > 6*time.Second {
			t.Errorf("Apply: %v after %s", err, time.Since(began))
		}
		if err := i.Remove(t.Context()); err != nil {
			t.Fatal(err)
		}
		began, l.notYet = time.Now(), time.Now().Add(30*time.Second)
		ended := make(chan error, 1)
		go func() { ended <- i.Run(t.Context()) }()
		sleep(t.Context(), 29*time.Second)
		if !l.has(mutating) || l.has(validating) {
			t.Errorf("before there is a server: mutating %v, validating %v", l.has(mutating), l.has(validating))
		}
		if err := <-ended; err != nil || !l.has(validating) || time.Since(began) > 45*time.Second {
			t.Errorf("Run: %v after %s", err, time.Since(began))
		}
	})
}

// If the check requests never get the expected answer, Apply must store the second configuration after a time limit.
// Remove must delete both configurations in any case.
func TestOrderHasATimeLimit(t *testing.T) {
	for name, answer := range map[string]string{"another policy denies the checks": "another policy", "the checks are forbidden": "forbidden", "the API server never knows": "absent", "it stays": "enforced"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				i, c := newFake(t, options(), denying("verify.example.com"), labelling("inject.example.com"))
				c.answer = func(int) string { return answer }
				began := time.Now()
				if err := i.Apply(t.Context()); err != nil || len(c.stored) != 2 || time.Since(began) > orderPatience+time.Second {
					t.Errorf("Apply: %v, %d stored after %s", err, len(c.stored), time.Since(began))
				}
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second) // less than the time limit
				defer cancel()
				err := i.Remove(ctx)
				if (err == nil) != (answer == "absent") || len(c.stored) > 0 {
					t.Errorf("Remove: %v, %d left", err, len(c.stored))
				}
			})
		})
	}
}

// While a missing caBundle keeps a mutating webhook at Ignore, Promote must keep the validating webhooks at Ignore,
// too.
func TestValidatingStaysOpenWhileMutatingIsOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := options()
		o.FailOpenFirst = true
		i, c := newFake(t, o, denying("verify.example.com"), labelling("inject.example.com"))
		c.unbundled, c.bundled = true, validating
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		if err := i.Promote(ctx); !errors.Is(err, errUntrusted) || c.policies() != "verify Ignore" {
			t.Errorf("got %v, %s", err, c.policies())
		}
	})
}

// A user deletes the configurations while Run waits between the mutating and the validating one. Run must not store
// them again.
func TestRemovalBetweenTheKindsIsNotUndone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i, c := newFake(t, options(), denying("verify.example.com"), labelling("inject.example.com"))
		c.answer = func(int) string { return "unanswered" }
		ended := make(chan error, 1)
		go func() { ended <- i.Run(t.Context()) }()
		sleep(t.Context(), 5*time.Second)
		c.mu.Lock()
		clear(c.stored)
		c.answer = nil
		c.mu.Unlock()
		if err := <-ended; err != nil || len(c.stored) > 0 || i.Status().Phase != Removed {
			t.Errorf("%v, %d configurations, %s", err, len(c.stored), i.Status().Phase)
		}
	})
}

func TestNothingIsStoredWithoutTheNamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i, c := newFake(t, options(), denying("one.example.com"))
		c.nowhere = apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "ns")
		for what, do := range map[string]func(context.Context) error{"Apply": i.Apply, "Promote": i.Promote} {
			err := do(t.Context())
			if err == nil || !strings.HasPrefix(err.Error(), "nothing is installed: create namespace ns, in which the webhook runs: ") || c.applies > 0 {
				t.Errorf("%s: %v, %d applies", what, err, c.applies)
			}
		}
		c.nowhere = nil
		for _, other := range []error{answerOf("forbidden"), errors.New("the API server is away")} {
			if c.nowhere = other; i.Apply(t.Context()) != nil {
				t.Errorf("not to know is no reason: %v", other)
			}
		}
	})
}
