// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// The first replica of a rollout installs, and then the rollout is undone. No replica of the older program starts, so
// its webhooks are not installed again until a restart, as docs/operations.md explains. The restart must install them.
func TestRestartRepairsUndoneRollout(t *testing.T) {
	for _, revisions := range [][2]int64{{0, 0}, {7, 8}} {
		t.Run(fmt.Sprint("revisions ", revisions), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := options()
				o.FailOpenFirst, o.Deployment, o.Revision = true, "hooks", revisions[0]
				older, c := newFake(t, o, denying("old.example.com"))
				c.status = deployed(t, "one", true)
				if err := older.Run(t.Context()); err != nil {
					t.Fatal(err)
				}
				o.Revision = revisions[1]
				newer, _ := newFake(t, o, denying("new.example.com"))
				newer.cluster = c
				c.deploy(deployed(t, "two", false))
				ctx, stop := context.WithTimeout(t.Context(), time.Minute)
				defer stop()
				if err := newer.Run(ctx); err != nil {
					t.Fatal(err)
				}
				c.deploy(deployed(t, "one", true))
				if c.policies() != "new Ignore, old Ignore" {
					t.Errorf("taken back: %s", c.policies())
				}
				restart := func() Status {
					o.Revision = revisions[0]
					again, _ := newFake(t, o, denying("old.example.com"))
					again.cluster = c
					c.deploy(deployed(t, "one, restarted", true))
					if err := again.Run(t.Context()); err != nil {
						t.Error(err)
					}
					return again.Status()
				}
				at := restart()
				if revisions[0] > 0 { // the replica has the revision of the older template, so it is superseded
					if at.Phase != Superseded || c.policies() != "new Ignore, old Ignore" {
						t.Errorf("restarted: %+v, %s", at, c.policies())
					}
					c.mu.Lock()
					unstructured.RemoveNestedField(c.stored[validating].Object, "metadata", "annotations", revisionAnnotation)
					c.mu.Unlock()
					at = restart()
				}
				if at.Phase != Installed || c.policies() != "old Fail" {
					t.Errorf("restarted: %+v, %s", at, c.policies())
				}
			})
		})
	}
}

// A stored webhook with Fail moves to another server. Apply must first set Ignore on it, as on a new webhook.
func TestAnotherServerFailsOpenFirst(t *testing.T) {
	at := func(url string) Options {
		o := options()
		o.FailOpenFirst = true
		if url != "" {
			o.Configuration.Service, o.Configuration.URL, o.Configuration.Namespace = nil, url, "ns"
		}
		return o
	}
	for _, row := range []struct{ why, first, then, want string }{
		{"a URL for a Service", "", "https://laptop.example.com:9443", "one Ignore"},
		{"another URL", "https://a.example.com:9443", "https://b.example.com:9443", "one Ignore"},
		{"the same Service", "", "", "one Fail"},
		{"the same URL", "https://a.example.com:9443", "https://a.example.com:9443", "one Fail"},
		{"another path at the same server", "https://a.example.com:9443", "https://a.example.com:9443/hooks", "one Fail"},
	} {
		t.Run(row.why, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				first, c := newFake(t, at(row.first), denying("one.example.com"))
				if err := first.Promote(t.Context()); err != nil {
					t.Fatal(err)
				}
				o := at(row.then)
				o.Force = true
				then, _ := newFake(t, o, denying("one.example.com"))
				then.cluster = c
				phase := map[string]Phase{"one Ignore": FailingOpen, "one Fail": Installed}[row.want]
				if err := then.Apply(t.Context()); err != nil || c.policies() != row.want || then.Status().Phase != phase {
					t.Errorf("%v, %s, %+v", err, c.policies(), then.Status())
				}
				if err := then.Promote(t.Context()); err != nil || c.policies() != "one Fail" {
					t.Errorf("promoted: %v, %s", err, c.policies())
				}
			})
		})
	}
}
