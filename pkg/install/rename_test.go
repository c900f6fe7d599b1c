// SPDX-License-Identifier: Apache-2.0

package install

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
)

// policiesOf writes the failure policies of all webhooks but the marker.
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

// A webhook gets another name. There is never a time without the one and the other.
func TestAnotherName(t *testing.T) {
	rows := []struct {
		openFirst bool
		want      []string // after each change, from the old program's to the new one's
	}{
		{true, []string{"a Fail", "b Ignore, a Ignore", "b Fail, a Ignore", "b Fail"}},
		{false, []string{"a Fail", "b Fail, a Fail", "b Fail"}},
	}
	for _, row := range rows {
		t.Run(fmt.Sprint("FailOpenFirst ", row.openFirst), func(t *testing.T) {
			for crash := range 6 {
				synctest.Test(t, func(t *testing.T) {
					o := options()
					o.FailOpenFirst = row.openFirst
					older, c := newFake(t, o, denying("a.example.com"))
					if err := older.Promote(t.Context()); err != nil {
						t.Fatal(err)
					}
					c.history = c.history[len(c.history)-1:]
					newer, _ := newFake(t, o, denying("b.example.com"))
					newer.cluster = c
					if crash < 5 {
						c.fails, c.after = 1, crash
						_ = newer.Promote(t.Context())
						c.fails = 0
					}
					if err := newer.Promote(t.Context()); err != nil {
						t.Fatal(err)
					}
					var got []string
					for _, entries := range c.history {
						if now := policiesOf(entries); len(got) == 0 || now != got[len(got)-1] {
							got = append(got, now)
						}
					}
					if strings.Join(got, " → ") != strings.Join(row.want, " → ") {
						t.Errorf("it ended once after %d changes: %v", crash, strings.Join(got, " → "))
					}
				})
			}
		})
	}
}

// A replica of the new program that comes later neither brings the old name back nor keeps it.
func TestAnotherNameWithManyReplicas(t *testing.T) {
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

// What Wait vouches for after Apply is that the old name is gone.
func TestAVersionIsNotThereBeforeTheUnwantedIsGone(t *testing.T) {
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
