// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/admitkit/admitkit/examples/internal/livetest"
	"github.com/admitkit/admitkit/examples/seat-reservation/seats"
	"github.com/admitkit/admitkit/examples/testcluster"
	"github.com/admitkit/admitkit/pkg/program"
	"github.com/admitkit/admitkit/pkg/webhook"
)

var cluster *testcluster.Cluster

func TestMain(m *testing.M) {
	victimMain()
	livetest.Main(m, &cluster)
}

// atOnce is a Hold that ends a reservation before the reconciler can see it, so that tests need not wait.
const atOnce = time.Nanosecond

// patience is the time limit of Eventually, for a slow machine.
const patience = time.Minute

// setUp returns a namespace whose Pods need a seat, and a Gomega for the test. After the test it deletes these Pods and the
// ledger.
func setUp(t *testing.T) (*WithT, string) {
	t.Helper()
	g := NewWithT(t)
	g.SetDefaultEventuallyTimeout(patience)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "team-", Labels: map[string]string{seats.Required: "true"}}}
	g.Expect(cluster.Client.Create(t.Context(), namespace)).To(Succeed())
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		ledger := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ledgerKey.Namespace, Name: ledgerKey.Name}}
		if err := cluster.Client.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(namespace.Name)); err != nil {
			t.Error(err)
		}
		if err := cluster.Client.Delete(ctx, ledger); client.IgnoreNotFound(err) != nil {
			t.Error(err)
		}
	})
	return g, namespace.Name
}

// serve registers the hooks until the end of the test. It returns a function that runs the reconciler until then, so that
// a test can look at the reservations first.
func serve(t *testing.T, o seats.Options) (reconcile func()) {
	t.Helper()
	deps := program.NewDeps(cluster.Config(), logr.Discard())
	hooks, err := seats.New(deps, o)
	if err != nil {
		t.Fatal(err)
	}
	register(t, "seats", hooks...)
	return func() {
		ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
		ended := make(chan error, 1)
		go func() { ended <- deps.Start(ctx) }()
		t.Cleanup(func() {
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
}

// register registers hooks in configurations with this name until the end of the test.
func register(t *testing.T, name string, hooks ...*webhook.Hook) {
	t.Helper()
	stop, err := cluster.Serve(t.Context(), name, hooks...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func pod(namespace, name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "shop:v1"}}},
	}
}

// gates returns the scheduling gates of a stored Pod.
func gates(ctx context.Context, namespace, name string) func() ([]corev1.PodSchedulingGate, error) {
	return func() ([]corev1.PodSchedulingGate, error) {
		var stored corev1.Pod
		err := cluster.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &stored)
		return stored.Spec.SchedulingGates, err
	}
}

var ledgerKey = client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: "seats"}

// ledger returns the names in the ledger, sorted. A reservation has the suffix "?".
func ledger(ctx context.Context, key client.ObjectKey) func() ([]string, error) {
	return func() ([]string, error) {
		var stored corev1.ConfigMap
		if err := cluster.Client.Get(ctx, key, &stored); client.IgnoreNotFound(err) != nil {
			return nil, err
		}
		names := []string{}
		for uid, text := range stored.Data {
			var e struct{ Name, Expires string }
			if err := json.Unmarshal([]byte(text), &e); err != nil {
				return nil, fmt.Errorf("%s: %w", uid, err)
			}
			if e.Expires != "" {
				e.Name += "?"
			}
			names = append(names, e.Name)
		}
		slices.Sort(names)
		return names, nil
	}
}

const noSeat = "all 1 seats are taken: delete a Pod, or wait until one has finished"

// A Pod gets a seat, and its gate is removed. When it has finished or is deleted, the next one gets the seat.
func TestReleasedSeatGoesToTheNextPod(t *testing.T) {
	g, namespace := setUp(t)
	serve(t, seats.Options{Seats: 1, Hold: time.Hour})()
	create := func(name string) func() error {
		return func() error { return cluster.Client.Create(t.Context(), pod(namespace, name)) }
	}
	g.Expect(create("first")()).To(Succeed())
	g.Eventually(gates(t.Context(), namespace, "first")).Should(BeEmpty())
	g.Expect(create("second")()).To(MatchError(ContainSubstring(noSeat)))

	finished := pod(namespace, "first")
	g.Expect(cluster.Client.Get(t.Context(), client.ObjectKeyFromObject(finished), finished)).To(Succeed())
	finished.Status.Phase = corev1.PodSucceeded
	g.Expect(cluster.Client.Status().Update(t.Context(), finished)).To(Succeed())
	g.Eventually(create("second")).Should(Succeed())
	g.Eventually(gates(t.Context(), namespace, "second")).Should(BeEmpty())

	g.Expect(cluster.Client.Delete(t.Context(), pod(namespace, "second"))).To(Succeed())
	g.Eventually(create("third")).Should(Succeed())
}

// Another webhook denies the Pod after a seat was reserved for it.
func TestReservationOfADeniedPodIsReleased(t *testing.T) {
	g, namespace := setUp(t)
	reconcile := serve(t, seats.Options{Seats: 1, Hold: atOnce})
	register(t, "names", webhook.Validating(admissionregistrationv1.ValidatingWebhook{
		Name: "names.example.com", Rules: webhook.Rules(webhook.OnCreate("", "v1", "pods")),
	}, func(_ context.Context, req *webhook.Request[corev1.Pod]) error {
		if req.Name == "bad" {
			return webhook.Deny("choose another name")
		}
		return nil
	}))

	g.Expect(cluster.Client.Create(t.Context(), pod(namespace, "bad"))).To(MatchError(ContainSubstring("choose another name")))
	g.Expect(ledger(t.Context(), ledgerKey)()).To(Equal([]string{"bad?"}))
	g.Expect(cluster.Client.Create(t.Context(), pod(namespace, "good"))).To(MatchError(ContainSubstring(noSeat)))

	reconcile()
	g.Eventually(func() error { return cluster.Client.Create(t.Context(), pod(namespace, "good")) }).Should(Succeed())
	g.Eventually(gates(t.Context(), namespace, "good")).Should(BeEmpty())
	g.Eventually(ledger(t.Context(), ledgerKey)).Should(Equal([]string{"good"}))
}

// A request may still be running, so a reservation stays until it expires.
func TestReservationIsHeld(t *testing.T) {
	g, namespace := setUp(t)
	serve(t, seats.Options{Seats: 2, Hold: time.Hour})()
	taken := pod(namespace, "one")
	g.Expect(cluster.Client.Create(t.Context(), taken)).To(Succeed())
	g.Eventually(gates(t.Context(), namespace, "one")).Should(BeEmpty())
	// The name exists, so this Pod is not stored, but a seat is reserved for it.
	g.Expect(cluster.Client.Create(t.Context(), pod(namespace, "one"))).To(MatchError(apierrors.IsAlreadyExists, "IsAlreadyExists"))
	// The reconciler releases the seat of the deleted Pod. By then, it has also seen the reservation, and kept it.
	g.Expect(cluster.Client.Delete(t.Context(), taken)).To(Succeed())
	g.Eventually(ledger(t.Context(), ledgerKey)).Should(Equal([]string{"one?"}))
}

// Storing the Pod fails after a seat was reserved for it, because the name exists.
func TestReservationAfterAConflictIsReleased(t *testing.T) {
	g, namespace := setUp(t)
	reconcile := serve(t, seats.Options{Seats: 2, Hold: atOnce})
	g.Expect(cluster.Client.Create(t.Context(), pod(namespace, "one"))).To(Succeed())
	g.Expect(cluster.Client.Create(t.Context(), pod(namespace, "one"))).To(MatchError(apierrors.IsAlreadyExists, "IsAlreadyExists"))
	g.Expect(ledger(t.Context(), ledgerKey)()).To(Equal([]string{"one?", "one?"}))

	reconcile()
	g.Eventually(ledger(t.Context(), ledgerKey)).Should(Equal([]string{"one"}))
	g.Eventually(gates(t.Context(), namespace, "one")).Should(BeEmpty())
	g.Expect(cluster.Client.Create(t.Context(), pod(namespace, "two"))).To(Succeed())
}

// A Pod is stored after its reservation has expired, and another Pod has the seat. The late Pod must wait for the seat.
func TestLatePodWaits(t *testing.T) {
	g, namespace := setUp(t)
	reconcile := serve(t, seats.Options{Seats: 1, Hold: time.Hour})
	record := func(data map[string]string) {
		t.Helper()
		var stored corev1.ConfigMap
		g.Expect(cluster.Client.Get(t.Context(), ledgerKey, &stored)).To(Succeed())
		stored.Data = data
		g.Expect(cluster.Client.Update(t.Context(), &stored)).To(Succeed())
	}
	first := pod(namespace, "first")
	g.Expect(cluster.Client.Create(t.Context(), first)).To(Succeed())
	record(nil)
	g.Expect(cluster.Client.Create(t.Context(), pod(namespace, "late"))).To(Succeed())

	taken := map[string]string{
		string(first.UID): fmt.Sprintf(`{"namespace":%q,"name":"first"}`, namespace),
		"1234":            `{"namespace":"elsewhere","name":"gone","expires":"2000-01-01T00:00:00Z"}`,
	}
	record(taken)
	reconcile()
	g.Eventually(ledger(t.Context(), ledgerKey)).Should(Equal([]string{"first"}))
	record(taken) // the reconciler handles this change only after it has removed the gates
	g.Eventually(ledger(t.Context(), ledgerKey)).Should(Equal([]string{"first"}))
	g.Expect(gates(t.Context(), namespace, "first")()).To(BeEmpty())
	g.Expect(gates(t.Context(), namespace, "late")()).NotTo(BeEmpty())

	g.Expect(cluster.Client.Delete(t.Context(), first)).To(Succeed())
	g.Eventually(gates(t.Context(), namespace, "late")).Should(BeEmpty())
	g.Expect(ledger(t.Context(), ledgerKey)()).To(Equal([]string{"late"}))
}

// Another replica takes the last seat between the hook's read of the ledger and its write.
func TestConflictInTheLedgerTakesNoSeatTwice(t *testing.T) {
	for _, existing := range []bool{false, true} {
		t.Run(fmt.Sprintf("the ledger exists: %v", existing), func(t *testing.T) {
			g, namespace := setUp(t)
			stored := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ledgerKey.Namespace, Name: ledgerKey.Name}}
			if existing {
				g.Expect(cluster.Client.Create(t.Context(), stored)).To(Succeed())
			}
			other := func() error {
				stored.Data = map[string]string{"1234": `{"namespace":"elsewhere","name":"other"}`}
				if existing {
					return cluster.Client.Update(t.Context(), stored)
				}
				return cluster.Client.Create(t.Context(), stored)
			}
			register(t, "seats", seats.Hooks(&seats.Ledger{
				Options: seats.Options{Seats: 1, Hold: atOnce}, ConfigMap: ledgerKey, Client: &interrupted{Client: cluster.Client, by: other},
			})...)
			g.Expect(cluster.Client.Create(t.Context(), pod(namespace, "late"))).To(MatchError(ContainSubstring(noSeat)))
			g.Expect(ledger(t.Context(), ledgerKey)()).To(Equal([]string{"other"}))
		})
	}
}

// An interrupted client calls the function by before its first write.
type interrupted struct {
	client.Client
	by func() error
}

func (c *interrupted) interrupt() (err error) {
	if c.by != nil {
		err, c.by = c.by(), nil
	}
	return err
}

func (c *interrupted) Create(ctx context.Context, object client.Object, options ...client.CreateOption) error {
	if err := c.interrupt(); err != nil {
		return err
	}
	return c.Client.Create(ctx, object, options...)
}

func (c *interrupted) Update(ctx context.Context, object client.Object, options ...client.UpdateOption) error {
	if err := c.interrupt(); err != nil {
		return err
	}
	return c.Client.Update(ctx, object, options...)
}

// A dry run gets the same answer as a real request, and takes no seat.
func TestDryRunTakesNoSeat(t *testing.T) {
	g, namespace := setUp(t)
	serve(t, seats.Options{Seats: 1, Hold: time.Hour})
	dry := pod(namespace, "dry")
	g.Expect(cluster.Client.Create(t.Context(), dry, client.DryRunAll)).To(Succeed())
	g.Expect(dry.Spec.SchedulingGates).To(ConsistOf(corev1.PodSchedulingGate{Name: seats.Mark}))
	g.Expect(ledger(t.Context(), ledgerKey)()).To(BeEmpty())

	g.Expect(cluster.Client.Create(t.Context(), pod(namespace, "real"))).To(Succeed())
	g.Expect(ledger(t.Context(), ledgerKey)()).To(Equal([]string{"real?"}))
	g.Expect(cluster.Client.Create(t.Context(), pod(namespace, "dry"), client.DryRunAll)).To(MatchError(ContainSubstring(noSeat)))
	g.Expect(ledger(t.Context(), ledgerKey)()).To(Equal([]string{"real?"}))
}
