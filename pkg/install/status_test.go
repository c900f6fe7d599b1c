// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
)

func TestPhases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := options()
		o.FailOpenFirst, o.Deployment = true, "hooks"
		i, c := newFake(t, o, denying("one.example.com"))
		want := func(why string, phase Phase, since time.Duration, text string) {
			t.Helper()
			s := i.Status()
			got := ""
			if s.Err != nil {
				got = s.Err.Error()
			}
			if s.Phase != phase || s.Phase != Idle && time.Since(s.Since) != since || !strings.Contains(got, text) || (got == "") != (text == "") {
				t.Errorf("%s: %s since %s: %v", why, s.Phase, time.Since(s.Since), s.Err)
			}
		}
		want("at first", Idle, 0, "")
		c.fails = 1
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- i.Run(ctx) }()
		sleep(t.Context(), 500*time.Millisecond)
		want("nothing can be stored", Installing, 500*time.Millisecond, "the API server is away")
		sleep(t.Context(), time.Hour)
		want("no replica is ready", FailingOpen, time.Hour-500*time.Millisecond, "there is no Deployment")
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		want("a stop is no trouble", FailingOpen, time.Hour-500*time.Millisecond, "there is no Deployment")
		c.deploy(deployed(t, "one", true))
		if err := i.Promote(t.Context()); err != nil {
			t.Error(err)
		}
		if s := i.Status(); s.Phase != Installed || s.Err != nil {
			t.Errorf("promoted, and %+v", s)
		}
		since := i.Status().Since
		if err := i.Run(t.Context()); err != nil || i.Status() != (Status{Phase: Installed, Since: since}) {
			t.Errorf("again: %v, %+v", err, i.Status())
		}
		later, _ := newFake(t, o, denying("one.example.com"))
		later.cluster = c
		if err := later.Apply(t.Context()); err != nil || later.Status().Phase != Installed {
			t.Errorf("a replica that has nothing to open: %v, %+v", err, later.Status())
		}
		if err := i.Remove(t.Context()); err != nil || i.Status().Phase != Removed {
			t.Errorf("%v, %+v", err, i.Status())
		}
		o.FailOpenFirst, o.Revision = false, 3
		i, _ = newFake(t, o, denying("one.example.com"))
		i.cluster = c
		if err := i.Apply(t.Context()); err != nil || i.Status().Phase != Installed {
			t.Errorf("without FailOpenFirst: %v, %+v", err, i.Status())
		}
		o.Revision = 2
		older, _ := newFake(t, o, denying("one.example.com"))
		older.cluster = c
		if err := older.Run(t.Context()); err != nil || older.Status().Phase != Superseded {
			t.Errorf("an older one: %v, %+v", err, older.Status())
		}
	})
}

// While Run waits for a Deployment that never becomes ready, it must log an error every five minutes. With
// FailOpenFirst the error must warn that requests can bypass the webhooks.
func TestEndlessWaitIsAnError(t *testing.T) {
	for _, openFirst := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			var log []string
			o := options()
			o.FailOpenFirst, o.Deployment = openFirst, "hooks"
			o.Logger = funcr.New(func(_, line string) {
				if strings.Contains(line, `"error"=`) {
					log = append(log, line)
				}
			}, funcr.Options{})
			i, c := newFake(t, o, denying("one.example.com"))
			c.status = deployed(t, "one", false)
			ctx, stop := context.WithTimeout(t.Context(), 21*time.Minute)
			defer stop()
			if err := i.Run(ctx); err != nil {
				t.Fatal(err)
			}
			if len(log) != 4 {
				t.Fatalf("in 20 minutes there were %d errors: %q", len(log), log)
			}
			for _, want := range []string{"0 of 1 replicas are ready", `"waiting"="20m`, "not every replica is ready yet", `"configuration"="hooks"`} {
				if !strings.Contains(log[3], want) {
					t.Errorf("no %q in %s", want, log[3])
				}
			}
			if strings.Contains(log[3], "requests can bypass them") != openFirst {
				t.Errorf("FailOpenFirst %v: %s", openFirst, log[3])
			}
		})
	}
}

func TestRemoveLogsWhetherWebhooksExisted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log []string
		o := options()
		o.Logger = funcr.New(func(_, line string) { log = append(log, line) }, funcr.Options{})
		i, _ := newFake(t, o, denying("one.example.com"))
		for _, want := range []string{"there are no webhooks to remove", "the webhooks are removed"} {
			log = nil
			if err := i.Remove(t.Context()); err != nil || len(log) == 0 || !strings.Contains(log[len(log)-1], want) {
				t.Errorf("%v: %q", err, log)
			}
			if err := i.Apply(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// Status must return the error that delays Promote at the moment, and no error that has been resolved.
func TestStatusHasTheLastError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := options()
		o.FailOpenFirst, o.Deployment = true, "hooks"
		i, c := newFake(t, o, denying("one.example.com"))
		c.status = deployed(t, "one", false)
		ended := make(chan error, 1)
		go func() { ended <- i.Promote(t.Context()) }()
		expect := func(text string) {
			t.Helper()
			sleep(t.Context(), 10*time.Minute)
			if err := i.Status().Err; err == nil || !strings.Contains(err.Error(), text) {
				t.Errorf("got %v, want %s", err, text)
			}
		}
		expect("0 of 1 replicas are ready")
		c.mu.Lock()
		c.status, c.answer = deployed(t, "one", true), func(int) string { return "unanswered" }
		c.before = func() {
			if err := i.Status().Err; err != nil {
				t.Errorf("it is ready, and got %v", err)
			}
		}
		c.mu.Unlock()
		expect("cannot call the webhook")
		c.mu.Lock()
		c.answer = func(int) string { return "absent" }
		c.mu.Unlock()
		expect("does not enforce the new version of ValidatingWebhookConfiguration hooks yet")
		c.mu.Lock()
		c.answer = nil
		c.mu.Unlock()
		if err := <-ended; err != nil || i.Status().Err != nil {
			t.Errorf("%v, %+v", err, i.Status())
		}
	})
}

// A user deletes an installed configuration, and Apply fails to store it again. The phase must then be Installing, and
// not Installed.
func TestMissingConfigurationIsNotInstalled(t *testing.T) {
	i, c := newFake(t, options(), denying("one.example.com"))
	if err := i.Apply(t.Context()); err != nil || i.Status().Phase != Installed {
		t.Fatal(err)
	}
	c.fails = 1
	if err := i.Apply(t.Context()); err == nil || i.Status().Phase != Installed {
		t.Errorf("it is there: %v, %+v", err, i.Status())
	}
	delete(c.stored, validating)
	c.fails = 1
	if err := i.Apply(t.Context()); err == nil || i.Status().Phase != Installing {
		t.Errorf("it is gone: %v, %+v", err, i.Status())
	}
	if err := i.Apply(t.Context()); err != nil || i.Status().Phase != Installed {
		t.Errorf("it is there again: %v, %+v", err, i.Status())
	}
}
