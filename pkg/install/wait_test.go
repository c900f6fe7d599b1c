// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Wait must get the expected answer ten times in a row. An answer that shows an older version restarts the count,
// because one of several API servers may be late.
func TestWaitAsksManyTimesInARow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i, c := newFake(t, options(), denying("one.example.com"))
		c.answer = func(n int) string { // two marker requests in each round, one of them for the kind without hooks
			switch round := (n + 1) / 2; {
			case n%2 == 1 || round == 5:
				return "absent"
			case round == 7:
				return "unanswered"
			}
			return "enforced"
		}
		if err := i.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		if want := 2 * (7 + defaultConfirmations); c.asked != want {
			t.Errorf("asked %d times, want %d", c.asked, want)
		}
	})
}

// The pause between two rounds must grow to at most twenty intervals while the API server cannot call the webhook.
func TestWaitPausesGrow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i, c := newFake(t, options(), denying("one.example.com"))
		c.answer = func(int) string { return "unanswered" }
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		err := i.Wait(ctx)
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "connection refused") {
			t.Errorf("got %v", err)
		}
		rounds := slices.Collect(func(yield func(time.Duration) bool) {
			for n := 2; n < len(c.at); n += 2 {
				yield(c.at[n] - c.at[n-2])
			}
		})
		if rounds[0] != 150*time.Millisecond || slices.Max(rounds) != 2*time.Second || !slices.IsSorted(rounds) {
			t.Errorf("pauses %v", rounds[:10])
		}
	})
}

func TestWaitFailsIfWaitingCannotHelp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i, c := newFake(t, options(), denying("one.example.com"))
		c.answer = func(int) string { return "forbidden" }
		err := i.Wait(t.Context())
		if err == nil || !strings.HasPrefix(err.Error(), "cannot check what is enforced, by a dry run of Lease ns/admitkit-marker: not allowed: grant the verb patch on leases") {
			t.Errorf("got %v", err)
		}
	})
}

func TestRemoveWaitsUntilNothingIsEnforced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i, c := newFake(t, options(), denying("one.example.com"))
		c.answer = func(n int) string {
			return []string{"enforced", "unanswered", "the API server is away", "absent"}[min(n/4, 3)]
		}
		if err := i.Remove(t.Context()); err != nil {
			t.Fatal(err)
		}
		if c.asked < 12+2*defaultConfirmations {
			t.Errorf("asked %d times only", c.asked)
		}
	})
}

func TestLook(t *testing.T) {
	marker := markerName("hooks")
	denied := func(name, text string) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonForbidden, Code: 403,
			Message: fmt.Sprintf("admission webhook %q denied the request: %s", name, text)}}
	}
	const quota = "exceeded quota: q, requested: count/leases.coordination.k8s.io=1, used: count/leases.coordination.k8s.io=0, limited: count/leases.coordination.k8s.io=0"
	forbidden := func(why string) error {
		return apierrors.NewForbidden(leases.GroupResource(), markerObject, errors.New(why))
	}
	rows := []struct {
		why  string
		err  error
		want markerResult
	}{
		{"created", nil, absent},
		{"the marker's own words", denied(marker, markerText), enforced},
		{"another webhook quotes them", denied("marker.other.admitkit.dev", markerText), unclear},
		{"another message under the name of the marker", denied(marker, "no"), unclear},
		{"the marker cannot be called", answerOf("unanswered"), unanswered},
		{"another webhook cannot be called", apierrors.NewInternalError(errors.New(`failed calling webhook "other.example.com": x`)), unclear},
		{"another webhook quotes all of it", denied("marker.other.admitkit.dev", denied(marker, markerText).Error()), unclear},
		{"the label was removed, so no webhook saw the request", errStripped, unclear},
		{"a full quota, which comes after webhooks", forbidden(quota), absent},
		{"a webhook that speaks of quotas", denied("other.example.com", "exceeded quota: "+quota), unclear},
		{"one that repeats the plugin", denied("other.example.com", forbidden(quota).Error()), unclear},
		{"a policy that speaks of quotas", forbidden("ValidatingAdmissionPolicy 'p' with binding 'b' denied request: " + quota), unclear},
		{"a quota that is not known yet", forbidden("status unknown for quota: q, resources: count/leases"), unclear},
		{"no such right", answerOf("forbidden"), unclear},
		{"no API server", errors.New("connection refused"), unclear},
		{"a proxy that repeats what it reads", errors.New(denied(marker, markerText).Error()), unclear},
	}
	for _, row := range rows {
		if got := resultOf(marker, row.err); got != row.want {
			t.Errorf("%s: %d, want %d", row.why, got, row.want)
		}
	}
}

func TestRolledOut(t *testing.T) {
	good := appsv1.DeploymentStatus{ObservedGeneration: 3, Replicas: 2, UpdatedReplicas: 2, ReadyReplicas: 2}
	rows := []struct {
		why     string
		change  func(*appsv1.Deployment)
		problem string
	}{
		{"a finished rollout", func(*appsv1.Deployment) {}, ""},
		{"one replica, by default", func(d *appsv1.Deployment) { d.Spec.Replicas, d.Status.Replicas, d.Status.UpdatedReplicas = nil, 1, 1 }, ""},
		{"an old status", func(d *appsv1.Deployment) { d.Generation = 4 }, "its latest change has not been observed yet"},
		{"scaled to zero", func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(0)) }, "it is scaled to zero replicas"},
		{"a rollout begins", func(d *appsv1.Deployment) { d.Status.UpdatedReplicas = 1 }, "1 of 2 replicas have its newest template"},
		{"old replicas", func(d *appsv1.Deployment) { d.Status.Replicas = 3 }, "1 replicas still have an older template"},
		{"one is not ready", func(d *appsv1.Deployment) { d.Status.ReadyReplicas = 1 }, "1 of 2 replicas are ready"},
	}
	for _, row := range rows {
		d := &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Replicas: new(int32(2))}, Status: good}
		d.Generation = 3
		row.change(d)
		got := ""
		if err := rolledOut(d); err != nil {
			got = err.Error()
		}
		if got != row.problem {
			t.Errorf("%s: %q, want %q", row.why, got, row.problem)
		}
	}
}

// Promote must apply nothing until the Deployment is ready.
func TestPromoteWaitsForTheDeployment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := options()
		o.FailOpenFirst, o.Deployment = true, "hooks"
		i, c := newFake(t, o, denying("one.example.com"))
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if err := i.Promote(ctx); err == nil || !strings.HasSuffix(err.Error(), "last seen: there is no Deployment") {
			t.Errorf("got %v", err)
		}
		if c.applies > 0 {
			t.Errorf("%d applies", c.applies)
		}
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&appsv1.Deployment{
			Status: appsv1.DeploymentStatus{Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1}})
		if err != nil {
			t.Fatal(err)
		}
		c.status = &unstructured.Unstructured{Object: content}
		if err := i.Promote(t.Context()); err != nil {
			t.Fatal(err)
		}
		if c.applies != 2 || !failsClosed(readLive(c.stored[validating]).entry("one.example.com")) {
			t.Errorf("%d applies, policies %v", c.applies, readLive(c.stored[validating]).entries)
		}
	})
}
