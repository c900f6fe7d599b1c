// SPDX-License-Identifier: Apache-2.0

package proof

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	rotationRate = 20 // creates per second, with two handshakes each
	caSecret     = "hooks-ca"
)

// rotating returns a service of three replicas that rotate their certificates. Each call needs a new
// handshake.
func rotating(t *testing.T, certificates string, rotation Rotation) *service {
	t.Helper()
	s := newService(t, 200*time.Millisecond)
	rotation.Kubeconfig, rotation.Namespace, rotation.Secret = plane.kubeconfig, s.namespace, caSecret
	rotation.Hosts, rotation.Configuration = []string{s.host}, s.namespace
	s.settings = Settings{
		Server: Admitkit, Pause: 20 * time.Millisecond, ShutdownDelay: time.Second,
		MaxConnectionAge: 1, Certificates: certificates, Rotation: rotation,
	}
	s.configure(t, nil)
	for range 3 {
		s.start(t)
	}
	s.awaitEnforced(t)
	return s
}

// TestRotationFailsNoCall rotates the CA several times under load, while replicas are killed and the
// Secret is damaged. With several API servers, it also kills and restarts one of these. Neither a call nor a
// handshake of an observer may fail.
func TestRotationFailsNoCall(t *testing.T) {
	s := rotating(t, SelfManaged, Rotation{
		// The other times must fit into a third of the CA's lifetime.
		CALifetime:   scale(36*time.Second, 150*time.Second),
		LeafLifetime: scale(8*time.Second, 35*time.Second),
		Settle:       scale(1500*time.Millisecond, 5*time.Second),
		Skew:         scale(500*time.Millisecond, 2*time.Second),
		Interval:     scale(400*time.Millisecond, time.Second),
		MaxLag:       scale(100*time.Millisecond, 400*time.Millisecond),
	})
	target := scale(2, 10)
	live := watchBundles(t, s)
	observers := []*observer{startObserver(t, s, live[0], "first observer"), startObserver(t, s, live[1], "second observer")}
	l := startLoad(t, rotationRate, create(s.namespace, nil))
	h := newHavoc(t, s)
	deadline := time.Now().Add(scale(2*time.Minute, time.Hour))
	for reported := 0; live[0].rotations() < target; {
		if time.Now().After(deadline) {
			t.Fatalf("only %d rotations before the deadline", live[0].rotations())
		}
		h.next(t)
		if done := live[0].rotations(); done > reported || soak {
			calls, failed := l.count()
			progress("%s: %d rotations, %d calls, %d failed, %s", t.Name(), done, calls, failed, h)
			reported = done
		}
	}
	l.end()
	calls, failed := l.count()
	report(t, row{
		calls: calls, failed: failed, rotations: live[0].rotations(), restart: h.killed,
		p50: l.percentile(.5), p99: l.percentile(.99), note: h.String(),
	})
	if failed > 0 {
		t.Errorf("failed calls:\n%s", l.failures(l.start))
	}
	for i, o := range observers {
		calls, failed := o.count()
		report(t, row{proof: fmt.Sprintf("%s, handshakes of observer %d", t.Name(), i+1), calls: calls, failed: failed, p50: o.percentile(.5), p99: o.percentile(.99), note: fmt.Sprintf("%d took too long and do not count", o.late.Load())})
		if failed > 0 {
			t.Errorf("failed handshakes:\n%s", o.failures(l.start))
		}
	}
}

// TestNaiveRotationFailsCalls shows that TestRotationFailsNoCall can fail, even without kills and damage.
func TestNaiveRotationFailsCalls(t *testing.T) {
	t.Run("a naive rotator", func(t *testing.T) {
		rotationFails(t, rotating(t, Naive, Rotation{
			CALifetime: 9 * time.Second, Skew: time.Second, Interval: 400 * time.Millisecond, MaxLag: 150 * time.Millisecond,
		}), func() {}, func(failedCalls, failedHandshakes int) bool { return failedCalls > 0 && failedHandshakes > 0 })
	})
	// The API server of this test uses a new caBundle at once. So only the handshakes of the observer fail.
	t.Run("a new CA that signs at once", func(t *testing.T) {
		s := rotating(t, SelfManaged, Rotation{
			CALifetime: 30 * time.Second, LeafLifetime: 6 * time.Second, Settle: -1, Skew: time.Second, Interval: 400 * time.Millisecond,
		})
		rotate := func() { newHavoc(t, s).change(t, "rotate") }
		rotationFails(t, s, rotate, func(_, failedHandshakes int) bool { return failedHandshakes > 0 })
	})
}

// rotationFails rotates certificates under load until enough, called with the numbers of failed calls and handshakes,
// returns true. The test fails if that takes more than a minute.
func rotationFails(t *testing.T, s *service, rotate func(), enough func(failedCalls, failedHandshakes int) bool) {
	t.Helper()
	live := watchBundles(t, s)
	s.settings.Rotation.Settle, s.settings.Rotation.Skew = 1500*time.Millisecond, time.Second // the observer uses them
	o := startObserver(t, s, live[0], "observer")
	l := startLoad(t, rotationRate, create(s.namespace, nil))
	l.awaitCalls(t, 2*rotationRate) // lasts longer than the observer's delay
	rotate()
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		_, failed := l.count()
		_, failedHandshakes := o.count()
		return enough(failed, failedHandshakes), nil
	})
	l.end()
	calls, failed := l.count()
	report(t, row{calls: calls, failed: failed, rotations: live[0].rotations(), p50: l.percentile(.5), p99: l.percentile(.99), note: "as expected"})
	calls, failed = o.count()
	report(t, row{proof: t.Name() + ", handshakes", calls: calls, failed: failed, p50: o.percentile(.5), p99: o.percentile(.99), note: "as expected"})
	if err != nil {
		t.Fatalf("too few calls failed in a minute and %d rotations. The failures are:\n%s%s", live[0].rotations(), l.failures(l.start), o.failures(l.start))
	}
	t.Logf("as expected:\n%s%s", l.failures(l.start), o.failures(l.start))
}

// havoc kills replicas and damages the Secret, if possible just after a replica has finished a step of
// the rotation. Another replica must then do the next step, perhaps from a damaged state.
type havoc struct {
	s       *service
	random  *rand.Rand
	actions []string // next actions, in this order
	phases  map[*process]string
	maxWait time.Duration // longest wait for a step before the next action
	killed  int
	done    map[string]int // number of actions, by name
	started bool           // the first rotation was requested
}

func newHavoc(t *testing.T, s *service) *havoc {
	return &havoc{
		s: s, random: newRandom("havoc of " + t.Name()), phases: map[*process]string{},
		maxWait: scale(3*time.Second, 12*time.Second), done: map[string]int{},
	}
}

func (h *havoc) String() string { return fmt.Sprintf("havoc %v", h.done) }

// next waits until a replica has finished a step, and takes the next action. The first call also requests a
// rotation, because otherwise the first CA would stay in use for a long time.
func (h *havoc) next(t *testing.T) {
	t.Helper()
	if !h.started {
		h.started = true
		h.change(t, "rotate")
	}
	stepped := h.awaitStep(t)
	if len(h.actions) == 0 {
		h.actions = []string{"kill", "delete", "kill", "empty", "kill two", "corrupt", "rotate"}
		if numberOfAPIServers() > 1 {
			h.actions = append(h.actions, "kill an API server", "restart an API server")
		}
		h.random.Shuffle(len(h.actions), func(i, j int) { h.actions[i], h.actions[j] = h.actions[j], h.actions[i] })
	}
	action := h.actions[0]
	h.actions = h.actions[1:]
	switch action {
	case "kill":
		h.kill(t, stepped)
	case "kill two":
		others := []*replica{h.s.replicas[0], h.s.replicas[1]}
		if n := h.random.IntN(3); n < 2 {
			others[n] = h.s.replicas[2]
		}
		h.kill(t, others...)
	case "kill an API server", "restart an API server":
		if len(plane.servers) < numberOfAPIServers() {
			t.Fatal("an API server did not start")
		}
		if action == "kill an API server" {
			plane.kill(t, 1)
		} else {
			plane.end(t, 1)
		}
		plane.add(t)
	default:
		h.change(t, action)
	}
	h.done[action]++
}

// awaitStep waits until a replica enters another phase, and returns the replica. After h.maxWait it
// returns a random replica.
func (h *havoc) awaitStep(t *testing.T) *replica {
	t.Helper()
	stepped := h.s.replicas[h.random.IntN(len(h.s.replicas))]
	_ = wait.PollUntilContextTimeout(t.Context(), 30*time.Millisecond, h.maxWait, true, func(context.Context) (bool, error) {
		for _, r := range h.s.replicas {
			stats, err := r.stats("")
			if err != nil {
				t.Errorf("replica %s: %v", r.name, err)
				return true, nil
			}
			before, known := h.phases[r.process]
			h.phases[r.process] = stats.Phase
			if known && before != stats.Phase {
				stepped = r
				return true, nil
			}
		}
		return false, nil
	})
	return stepped
}

// kill drains replicas, kills them and starts others. Without the drain, calls in flight would fail for
// reasons other than certificates. TestKillFailsOnlyExposedCalls counts such failures. This test is
// about the state that a killed replica leaves in the cluster.
func (h *havoc) kill(t *testing.T, victims ...*replica) {
	t.Helper()
	for _, r := range victims {
		r.doomed.Store(true)
		h.s.balancer.drain(t, r.endpoint)
	}
	for _, r := range victims {
		r.kill(t)
		h.s.balancer.remove(r.endpoint)
		h.killed++
	}
	for _, r := range victims {
		h.s.fill(t, r)
	}
}

// change deletes or damages the Secret, or requests a rotation in it.
func (h *havoc) change(t *testing.T, action string) {
	t.Helper()
	ctx, api := t.Context(), clients.CoreV1().Secrets(h.s.namespace)
	for {
		secret, err := api.Get(ctx, caSecret, metav1.GetOptions{})
		if err == nil {
			switch action {
			case "delete":
				err = api.Delete(ctx, caSecret, metav1.DeleteOptions{})
			default:
				h.damage(secret, action)
				_, err = api.Update(ctx, secret, metav1.UpdateOptions{})
			}
		}
		switch {
		case err == nil, apierrors.IsNotFound(err): // already deleted, and not yet created again
			return
		case !apierrors.IsConflict(err):
			t.Fatal(err)
		}
	}
}

// damage changes the data of the Secret.
func (h *havoc) damage(secret *corev1.Secret, action string) {
	switch action {
	case "rotate":
		if secret.Data == nil {
			secret.Data = map[string][]byte{}
		}
		secret.Data["rotate"] = []byte("please")
	case "empty":
		secret.Data = nil
	case "corrupt":
		for key, value := range secret.Data {
			for range 3 {
				if len(value) > 0 {
					value[h.random.IntN(len(value))] ^= byte(1 + h.random.IntN(255))
				}
			}
			if h.random.IntN(2) == 0 {
				value = value[:len(value)/2]
			}
			secret.Data[key] = value
		}
	}
}
