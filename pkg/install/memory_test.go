// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// deployed returns a Deployment with one replica. Its Pod template differs for each image.
func deployed(t *testing.T, image string, ready bool) *unstructured.Unstructured {
	t.Helper()
	d := &appsv1.Deployment{Status: appsv1.DeploymentStatus{Replicas: 1, UpdatedReplicas: 1}}
	d.Spec.Template.Annotations = map[string]string{"image": image}
	if ready {
		d.Status.ReadyReplicas = 1
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(d)
	if err != nil {
		t.Fatal(err)
	}
	return &unstructured.Unstructured{Object: content}
}

func (c *fakeCluster) deploy(object *unstructured.Unstructured) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.status = object
}

// TestWaitingReplicaDoesNotUndoRemoval deletes the configurations while a replica waits. The replica must not apply
// them again. A later call of Apply must.
func TestWaitingReplicaDoesNotUndoRemoval(t *testing.T) {
	waits := map[string]func(*Installer, context.Context) error{
		"Run": (*Installer).Run,
		"Promote": func(i *Installer, ctx context.Context) error {
			if err := i.Promote(ctx); !errors.Is(err, ErrRemoved) {
				return errors.Join(errors.New("it does not tell"), err)
			}
			return nil
		},
	}
	reasons := map[string]func(*testing.T, *fakeCluster){
		"for the Deployment": func(t *testing.T, c *fakeCluster) { c.deploy(deployed(t, "one", false)) },
		"to be enforced": func(t *testing.T, c *fakeCluster) {
			c.deploy(deployed(t, "one", true))
			c.answer = func(int) string { return "unanswered" }
		},
		"for the caBundle": func(t *testing.T, c *fakeCluster) {
			c.deploy(deployed(t, "one", true))
			c.unbundled = true
		},
	}
	for how, wait := range waits {
		for why, reason := range reasons {
			if how == "Promote" && why == "to be enforced" {
				continue // only its context ends this wait, and it applies nothing afterwards
			}
			t.Run(how+" "+why, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					o := options()
					o.FailOpenFirst, o.Deployment = true, "hooks"
					i, c := newFake(t, o, denying("one.example.com"), labelling("two.example.com"))
					reason(t, c)
					if err := i.Apply(t.Context()); err != nil {
						t.Fatal(err)
					}
					ended := make(chan error, 1)
					go func() { ended <- wait(i, t.Context()) }()
					sleep(t.Context(), 5*time.Second)
					c.mu.Lock()
					clear(c.stored)
					before := c.applies
					c.status, c.answer = deployed(t, "one", true), nil
					c.mu.Unlock()
					if err := <-ended; err != nil {
						t.Error(err)
					}
					if c.applies != before || len(c.stored) > 0 {
						t.Errorf("%d applies after the removal, and there are %d configurations", c.applies-before, len(c.stored))
					}
					if err := i.Apply(t.Context()); err != nil || len(c.stored) != 2 {
						t.Errorf("who asks for it gets it again: %v, %d configurations", err, len(c.stored))
					}
				})
			})
		}
	}
}

// An older program waits until its Deployment is ready. Meanwhile the Deployment changes to a newer program. The older
// program must then stop, even without a Revision.
func TestOlderProgramStopsWithoutRevision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := options()
		o.FailOpenFirst, o.Deployment = true, "hooks"
		older, c := newFake(t, o, denying("old.example.com"))
		c.status = deployed(t, "one", false)
		ended := make(chan error, 1)
		go func() { ended <- older.Run(t.Context()) }()
		sleep(t.Context(), 5*time.Second)

		c.deploy(deployed(t, "two", false))
		newer, _ := newFake(t, o, denying("new.example.com"))
		newer.cluster = c
		newerEnded := make(chan error, 1)
		go func() { newerEnded <- newer.Run(t.Context()) }()
		sleep(t.Context(), 5*time.Minute)
		c.mu.Lock()
		if policies := c.policies(); policies != "new Ignore, old Ignore" {
			t.Errorf("the older one has come in between: %s", policies)
		}
		c.mu.Unlock()
		c.deploy(deployed(t, "two", true))
		if err := errors.Join(<-ended, <-newerEnded); err != nil {
			t.Error(err)
		}
		if policies := c.policies(); policies != "new Fail" {
			t.Errorf("in the end there is %s", policies)
		}
	})
}

// The older program must apply nothing while the newer one is rolled out. If the rollout is undone, the older program
// must apply its webhooks again.
func TestOlderProgramPausesDuringRollout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := options()
		o.FailOpenFirst, o.Deployment = true, "hooks"
		i, c := newFake(t, o, denying("one.example.com"))
		c.status = deployed(t, "one", true)
		c.answer = func(int) string { return "absent" } // the newer program has applied its webhooks
		ended := make(chan error, 1)
		go func() { ended <- i.Run(t.Context()) }()
		sleep(t.Context(), 5*time.Second)
		c.deploy(deployed(t, "two", false))
		sleep(t.Context(), 10*time.Minute)
		c.mu.Lock()
		if c.applies != 1 {
			t.Errorf("%d applies", c.applies)
		}
		c.status, c.answer = deployed(t, "one", true), nil
		c.mu.Unlock()
		if err := <-ended; err != nil || !failsClosed(readLive(c.stored[validating]).entry("one.example.com")) {
			t.Errorf("%v, %v", err, readLive(c.stored[validating]).entries)
		}
	})
}

// A replica of an older program without mutating hooks starts and deletes the mutating configuration. The newer program
// must not treat this as an uninstallation. It must apply the configuration again.
func TestKindMissingInOlderProgramComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := options()
		o.FailOpenFirst, o.Deployment = true, "hooks"
		newer, c := newFake(t, o, denying("one.example.com"), labelling("two.example.com"))
		o.FailOpenFirst = false // otherwise the replica would only apply the webhooks with Ignore
		older, _ := newFake(t, o, denying("one.example.com"))
		older.cluster = c
		c.status = deployed(t, "two", false)
		ended := make(chan error, 1)
		go func() { ended <- newer.Run(t.Context()) }()
		sleep(t.Context(), 5*time.Second)
		if err := older.Apply(t.Context()); err != nil || c.has(mutating) {
			t.Fatalf("%v, still there: %v", err, c.has(mutating))
		}
		c.deploy(deployed(t, "two", true))
		if err := <-ended; err != nil || !c.has(mutating) || !c.has(validating) {
			t.Errorf("%v, mutating %v, validating %v", err, c.has(mutating), c.has(validating))
		}
	})
}

func (c *fakeCluster) has(s sort) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stored[s] != nil
}

// A replica applies the deleted configuration again while Remove is running. Remove must delete it once more.
func TestRemoveDeletesReappliedConfiguration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i, c := newFake(t, options(), denying("one.example.com"), labelling("two.example.com"))
		if err := i.Apply(t.Context()); err != nil {
			t.Fatal(err)
		}
		back := c.stored[mutating].DeepCopy()
		c.removed = func(s sort) {
			if s == mutating {
				c.stored[mutating], c.removed = back, nil
			}
		}
		if err := i.Remove(t.Context()); err != nil || c.has(mutating) || c.has(validating) {
			t.Errorf("%v, mutating %v, validating %v", err, c.has(mutating), c.has(validating))
		}
	})
}

func TestPromoteReportsAnotherProgram(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := options()
		o.Deployment = "hooks"
		i, c := newFake(t, o, denying("one.example.com"))
		c.status = deployed(t, "one", false)
		ended := make(chan error, 1)
		go func() { ended <- i.Promote(t.Context()) }()
		sleep(t.Context(), 5*time.Second)
		c.deploy(deployed(t, "two", true))
		if err := <-ended; !errors.Is(err, ErrSuperseded) || !strings.HasPrefix(err.Error(), "Deployment ns/hooks: its Pod template has changed") || c.applies > 0 {
			t.Errorf("%v, %d applies", err, c.applies)
		}
	})
}
