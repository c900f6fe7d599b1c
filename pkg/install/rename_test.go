// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/admitkit/admitkit/pkg/webhook"
)

// policiesOf returns the names and failure policies of all webhooks except the marker.
func policiesOf(entries []map[string]any) string {
	var parts []string
	for _, entry := range entries {
		if name := nameOf(entry); name != markerName("hooks") {
			parts = append(parts, fmt.Sprint(strings.TrimSuffix(name, ".example.com"), " ", entry["failurePolicy"]))
		}
	}
	return strings.Join(parts, ", ")
}

func (c *fakeCluster) policies() string { return policiesOf(webhooks(c.stored[validating])) }

// A new version of the program renames or removes a webhook. Promote must change the stored webhooks in the expected
// steps, even if it fails once after any number of changes and is then called again.
func TestRename(t *testing.T) {
	a, b := func() *webhook.Hook { return denying("a.example.com") }, func() *webhook.Hook { return denying("b.example.com") }
	m := func() *webhook.Hook { return labelling("m.example.com") }
	type program []func() *webhook.Hook
	rows := []struct {
		why          string
		openFirst    bool
		older, newer program
		want         []string // the webhooks after each change, from the old program to the new one
	}{
		{"another name", true, program{a}, program{b}, []string{"a Fail", "b Ignore, a Ignore", "b Fail, a Ignore", "b Fail"}},
		{"another name", false, program{a}, program{b}, []string{"a Fail", "b Fail, a Fail", "b Fail"}},
		{"the last hook of a kind is removed", true, program{m, a}, program{m}, []string{"m Fail, a Fail", "m Fail, a Ignore", "m Fail"}},
		{"the last hook of a kind is removed", false, program{m, a}, program{m}, []string{"m Fail, a Fail", "m Fail"}},
		{"the last hook of a kind is removed", true, program{m, a}, program{a}, []string{"m Fail, a Fail", "m Ignore, a Fail", "a Fail"}},
		{"the last hook of a kind is removed", false, program{m, a}, program{a}, []string{"m Fail, a Fail", "a Fail"}},
		{"another kind", true, program{a}, program{m}, []string{"a Fail", "a Ignore", "m Ignore, a Ignore", "m Fail, a Ignore", "m Fail"}},
		{"another kind", false, program{a}, program{m}, []string{"a Fail", "m Fail, a Fail", "m Fail"}},
	}
	made := func(p program) (hooks []*webhook.Hook) {
		for _, hook := range p {
			hooks = append(hooks, hook())
		}
		return hooks
	}
	for n, row := range rows {
		t.Run(fmt.Sprint(n, " ", row.why, ", FailOpenFirst ", row.openFirst), func(t *testing.T) {
			for crash := range 7 {
				synctest.Test(t, func(t *testing.T) {
					o := options()
					o.FailOpenFirst = row.openFirst
					older, c := newFake(t, o, made(row.older)...)
					if err := older.Promote(t.Context()); err != nil {
						t.Fatal(err)
					}
					c.log = c.log[len(c.log)-1:]
					newer, _ := newFake(t, o, made(row.newer)...)
					newer.cluster = c
					if crash < 6 {
						c.fails, c.after = 1, crash
						_ = newer.Promote(t.Context())
						c.fails = 0
					}
					if err := newer.Promote(t.Context()); err != nil {
						t.Fatal(err)
					}
					if got, want := strings.Join(c.log, " → "), strings.Join(row.want, " → "); got != want {
						t.Errorf("it ended once after %d changes: %s, want %s", crash, got, want)
					}
				})
			}
		})
	}
}

// The newer program has no validating hooks. It must not remove the validating configuration until the rollout is over.
func TestKindStaysUntilTheRolloutIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := options()
		o.FailOpenFirst, o.Deployment, o.Configuration.Labels = true, "hooks", map[string]string{"app": "hooks"}
		older, c := newFake(t, o, denying("a.example.com"), labelling("m.example.com"))
		c.status = deployed(t, "one", true)
		if err := older.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		c.deploy(deployed(t, "two", false))
		newer, _ := newFake(t, o, labelling("m.example.com"))
		newer.cluster = c
		ended := make(chan error, 1)
		go func() { ended <- newer.Run(t.Context()) }()
		sleep(t.Context(), time.Hour)
		if c.policies() != "a Ignore" || newer.Status().Phase != FailingOpen {
			t.Errorf("%s, %+v", c.policies(), newer.Status())
		}
		left := c.stored[validating]
		if got := stagesOf(t, left, older.wanted[1]); len(got) != 1 || got[0] != installed {
			t.Errorf("the marker vouches for %v", got)
		}
		if owner := readLive(left).owner; owner != "ns/hooks" || left.GetLabels()["app"] != "hooks" {
			t.Errorf("owner %s, labels %v", owner, left.GetLabels())
		}
		c.deploy(deployed(t, "two", true))
		if err := <-ended; err != nil || c.has(validating) || newer.Status().Phase != Installed {
			t.Errorf("%v, still there: %v, %+v", err, c.has(validating), newer.Status())
		}
	})
}

// RBAC does not permit patching the configuration of a kind without hooks. Promote must delete such a configuration
// without patching it first.
func TestKindThatMayNotBePatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := options()
		o.FailOpenFirst = true
		older, c := newFake(t, o, denying("a.example.com"), labelling("m.example.com"))
		if err := older.Promote(t.Context()); err != nil {
			t.Fatal(err)
		}
		newer, _ := newFake(t, o, labelling("m.example.com"))
		newer.cluster = unpatched{c, validating}
		if err := newer.Apply(t.Context()); err != nil || c.policies() != "a Fail" || newer.Status().Phase != FailingOpen {
			t.Errorf("%v, %s, %+v", err, c.policies(), newer.Status())
		}
		if err := newer.Promote(t.Context()); err != nil || c.has(validating) || newer.Status().Phase != Installed {
			t.Errorf("%v, still there: %v, %+v", err, c.has(validating), newer.Status())
		}
	})
}

// unpatched is a cluster that rejects patches of one kind.
type unpatched struct {
	*fakeCluster
	kind sort
}

func (u unpatched) apply(ctx context.Context, s sort, object *unstructured.Unstructured, force bool) error {
	if s == u.kind {
		return apierrors.NewForbidden(configurations[s].GroupResource(), object.GetName(), fmt.Errorf("User %q cannot patch resource %q", "x", configurations[s].Resource))
	}
	return u.fakeCluster.apply(ctx, s, object, force)
}

// A second replica of the newer program must neither apply the webhook with the old name again nor delay its removal.
func TestRenameWithManyReplicas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := options()
		o.FailOpenFirst = true
		older, c := newFake(t, o, denying("a.example.com"))
		first, _ := newFake(t, o, denying("b.example.com"))
		second, _ := newFake(t, o, denying("b.example.com"))
		first.cluster, second.cluster = c, c
		for n, step := range []struct {
			do   func() error
			want string
		}{
			{func() error { return older.Promote(t.Context()) }, "a Fail"},
			{func() error { return first.Apply(t.Context()) }, "b Ignore, a Ignore"},
			{func() error { return second.Apply(t.Context()) }, "b Ignore, a Ignore"},
			{func() error { return older.Apply(t.Context()) }, "a Ignore, b Ignore"},
			{func() error { return first.Promote(t.Context()) }, "b Fail"},
			{func() error { return second.Apply(t.Context()) }, "b Fail"},
			{func() error { return second.Promote(t.Context()) }, "b Fail"},
			{func() error { return older.Apply(t.Context()) }, "a Ignore, b Ignore"},
			{func() error { return older.Promote(t.Context()) }, "a Fail"},
		} {
			if err := step.do(); err != nil || c.policies() != step.want {
				t.Fatalf("step %d: %s, want %s (%v)", n, c.policies(), step.want, err)
			}
		}
	})
}

// While the webhook with the old name is stored, the marker must not confirm the stage applied. So Wait returns only
// when the API server no longer enforces the old webhook.
func TestWaitRequiresRemovalOfOldNames(t *testing.T) {
	i, c := newFake(t, options(), denying("a.example.com"))
	if err := i.Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	i, _ = newFake(t, options(), denying("b.example.com"))
	i.cluster = c
	c.fails, c.after = 1, 1
	if err := i.Apply(t.Context()); err == nil || c.policies() != "b Fail, a Fail" {
		t.Fatalf("%v, %s", err, c.policies())
	}
	if got := stagesOf(t, c.stored[validating], i.wanted[1]); len(got) != 1 || got[0] != installed {
		t.Errorf("the marker vouches for %v", got)
	}
	if err := i.Apply(t.Context()); err != nil || c.policies() != "b Fail" {
		t.Fatalf("%v, %s", err, c.policies())
	}
	if got := stagesOf(t, c.stored[validating], i.wanted[1]); len(got) != 3 {
		t.Errorf("the marker vouches for %v", got)
	}
}
