// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"

	"github.com/admitkit/admitkit/pkg/certs/internal/kube"
)

// inBubble runs a test in a synctest bubble, with a fake cluster that has the target webhooks.
func inBubble(t *testing.T, name string, test func(*testing.T, *fakeCluster)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { test(t, newFakeCluster(webhooks)) })
	})
}

// settle waits until a CA was generated and has settled.
func settle() { elapse(30 * time.Minute) }

func stateIn(t *testing.T, f *fakeCluster) *state {
	t.Helper()
	s, err := decodeState(f.data())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSelfManaged(t *testing.T) {
	inBubble(t, "first start", func(t *testing.T, f *fakeCluster) {
		r := startReplica(t, testOptions(), f)
		defer r.stop(t)
		synctest.Wait()
		if err := r.call(f.bundleAt(webhooks, time.Now())); err != nil {
			t.Errorf("at once: %v", err)
		}
		if err := Ready(r)(t.Context()); err != nil {
			t.Errorf("trusted, and yet not ready: %v", err)
		}
		settle()
		st := r.Status()
		if st.Phase != Stable || st.Err != nil || !st.Trusted || st.Renewals != 0 {
			t.Errorf("after a while: %+v", st)
		}
		if want := time.Now().Add(7 * day); st.NotAfter.After(want) || st.NotBefore.After(time.Now().Add(-time.Hour)) {
			t.Errorf("valid from %s to %s, now is %s", st.NotBefore, st.NotAfter, time.Now())
		}
		if !bytes.Equal(r.Bundle(), f.bundleAt(webhooks, time.Now())) || !bytes.Equal(r.Bundle(), f.data()[bundleKey]) {
			t.Error("Bundle, the caBundle and ca.crt differ")
		}
	})
	inBubble(t, "CAs of others are trusted for one lifetime", func(t *testing.T, f *fakeCluster) {
		others, err := newAuthority("cert-manager", ECDSAP256, time.Now(), 365*day, 0)
		if err != nil {
			t.Fatal(err)
		}
		f.createTarget(webhooks, append([]byte("# by cert-manager\n"), encodeCertificate(others.cert)...))
		r := startReplica(t, testOptions(), f)
		defer r.stop(t)
		synctest.Wait()
		if err := r.call(f.bundleAt(webhooks, time.Now())); err != nil || Ready(r)(t.Context()) == nil {
			t.Errorf("ready before every API server can know; or, after all, %v", err)
		}
		settle()
		if err := Ready(r)(t.Context()); err != nil {
			t.Error(err)
		}
		if n := len(parseBundle(f.bundleAt(webhooks, time.Now()))); n != 2 {
			t.Errorf("%d CAs in the caBundle, want the one that was there and the new one", n)
		}
		elapse(8 * day)
		if n := len(parseBundle(f.bundleAt(webhooks, time.Now()))); n != 1 {
			t.Errorf("%d CAs in the caBundle after 8 days", n)
		}
	})
	inBubble(t, "a client empties the caBundle", func(t *testing.T, f *fakeCluster) {
		r := startReplica(t, testOptions(), f)
		defer r.stop(t)
		settle()
		f.createTarget(webhooks, nil)
		elapse(12 * time.Minute)
		if err := r.call(f.bundleAt(webhooks, time.Now())); err != nil {
			t.Error(err)
		}
	})
	inBubble(t, "a target that comes later", func(t *testing.T, f *fakeCluster) {
		f.deleteTarget(webhooks)
		r := startReplica(t, testOptions(), f)
		defer r.stop(t)
		settle()
		st := r.Status()
		if !errors.Is(st.Err, kube.ErrNoTarget) || !strings.Contains(st.Err.Error(), webhooks.String()) || !st.Trusted || st.Phase != Stable {
			t.Errorf("without the target: %+v", st)
		}
		f.createTarget(webhooks, nil)
		elapse(12 * time.Minute)
		if st := r.Status(); st.Err != nil {
			t.Error(st.Err)
		}
		if err := r.call(f.bundleAt(webhooks, time.Now())); err != nil {
			t.Error(err)
		}
	})
	inBubble(t, "rotated by hand", func(t *testing.T, f *fakeCluster) {
		r := startReplica(t, testOptions(), f)
		defer r.stop(t)
		settle()
		before := stateIn(t, f).signing
		data := f.data()
		data[rotateKey], data["note"] = nil, []byte("somebody's")
		f.setSecret(data)
		elapse(12 * time.Minute)
		if st := stateIn(t, f); st.phase() != Publishing || st.signing.id() != before.id() {
			t.Errorf("phase %s", st.phase())
		}
		settle()
		after := stateIn(t, f)
		if after.signing.id() == before.id() || after.phase() != Retiring || r.Status().Rotations != 1 {
			t.Errorf("phase %s, status %+v", after.phase(), r.Status())
		}
		if text := string(f.data()[stateKey]); strings.Count(text, "PRIVATE KEY-----\\n") != 2 { // the first and last line of one key
			t.Error("the key of the CA that signs no more is kept")
		}
		if _, there := f.data()[rotateKey]; there || string(f.data()["note"]) != "somebody's" {
			t.Errorf("keys of the Secret: %q", f.data())
		}
		elapse(8 * day)
		if st := stateIn(t, f); st.phase() != Stable || len(st.retired) != 1 {
			t.Errorf("phase %s, %d retired", st.phase(), len(st.retired))
		}
	})
	inBubble(t, "other names", func(t *testing.T, f *fakeCluster) {
		r := startReplica(t, testOptions(), f)
		defer r.stop(t)
		settle()
		if err := r.SetNames([]string{"b.example.com"}, []net.IP{net.IPv4(10, 0, 0, 1)}); err != nil {
			t.Fatal(err)
		}
		elapse(12 * time.Minute)
		c, _ := r.GetCertificate(nil)
		if !slices.Equal(c.Leaf.DNSNames, []string{"b.example.com"}) || len(c.Leaf.IPAddresses) != 1 {
			t.Errorf("names %q, %v", c.Leaf.DNSNames, c.Leaf.IPAddresses)
		}
		elapse(12 * time.Minute)
		if again, _ := r.GetCertificate(nil); again != c {
			t.Error("and another one for the same names")
		}
		if err := r.SetNames(nil, nil); err == nil {
			t.Error("no names are accepted")
		}
	})
	inBubble(t, "another type of key replaces the CA", func(t *testing.T, f *fakeCluster) {
		r := startReplica(t, testOptions(), f)
		settle()
		r.stop(t)
		o := testOptions()
		o.KeyType = Ed25519
		r = startReplica(t, o, f)
		defer r.stop(t)
		settle()
		settle()
		if c, _ := r.GetCertificate(nil); !Ed25519.is(c.Leaf.PublicKey) || !Ed25519.is(stateIn(t, f).signing.cert.PublicKey) {
			t.Errorf("the key is a %T", c.Leaf.PublicKey)
		}
	})
	inBubble(t, "only the elected replica writes", func(t *testing.T, f *fakeCluster) {
		o := testOptions()
		elected := make(chan struct{})
		o.Elected = elected
		r := startReplica(t, o, f)
		defer r.stop(t)
		settle()
		if st := r.Status(); st.Err == nil || f.data() != nil {
			t.Errorf("before: %+v", st)
		}
		f.setSecret(map[string][]byte{stateKey: []byte("{}")})
		settle()
		want := "Secret hooks/ca: the Secret is damaged: state.json does not match the checksum in state.sha256; this replica waits for the elected one to create it"
		if st := r.Status(); st.Err == nil || st.Err.Error() != want {
			t.Errorf("damaged: %+v", st)
		}
		close(elected)
		settle()
		if st := r.Status(); st.Err != nil || !st.Trusted {
			t.Errorf("after: %+v", st)
		}
	})
}

// While the API server is unreachable, a source renews its certificate with the CA in memory.
func TestAPIServerUnreachable(t *testing.T) {
	inBubble(t, "away", func(t *testing.T, f *fakeCluster) {
		away := &failing{cluster: f}
		r := startReplica(t, testOptions(), away)
		defer r.stop(t)
		settle()
		away.set(errFault)
		bundle := f.bundleAt(webhooks, time.Now())
		for range 30 {
			elapse(day)
			if err := r.call(bundle); err != nil {
				t.Fatal(err)
			}
		}
		st := r.Status()
		if !errors.Is(st.Err, errFault) || !st.Trusted {
			t.Errorf("status: %+v", st)
		}
		away.set(nil)
		settle()
		if st := r.Status(); st.Err != nil {
			t.Error(st.Err)
		}
	})
}

// A failing cluster returns err from each request while err is set.
type failing struct {
	cluster
	mu  sync.Mutex
	err error
}

func (s *failing) set(err error) { s.mu.Lock(); defer s.mu.Unlock(); s.err = err }
func (s *failing) get() error    { s.mu.Lock(); defer s.mu.Unlock(); return s.err }

func (s *failing) ReadSecret(ctx context.Context) (kube.Secret, error) {
	if err := s.get(); err != nil {
		return kube.Secret{}, err
	}
	return s.cluster.ReadSecret(ctx)
}

func (s *failing) ReadTarget(ctx context.Context, t kube.Target) (kube.TargetState, error) {
	if err := s.get(); err != nil {
		return kube.TargetState{}, err
	}
	return s.cluster.ReadTarget(ctx, t)
}

// TestUnreadableTargetHoldsUp runs a replica that cannot read a caBundle while the CA becomes due for replacement. The
// new CA must not sign until the old CA has expired.
func TestUnreadableTargetHoldsUp(t *testing.T) {
	inBubble(t, "unreadable", func(t *testing.T, f *fakeCluster) {
		other := Target{Kind: APIService, Name: "v1.example.com"}
		f.createTarget(other, nil)
		o := testOptions()
		o.Targets = append(o.Targets, other)
		c := &unreadable{cluster: f, blind: other}
		r := startReplica(t, o, f)
		settle()
		r.stop(t)
		o.Interval = 6 * time.Hour
		r = startReplica(t, o, c)
		defer r.stop(t)
		elapse(300 * day)
		if st := r.Status(); st.Phase != Publishing || st.Trusted || !strings.Contains(st.Err.Error(), other.String()) {
			t.Errorf("after 300 days: %+v", st)
		}
		elapse(66 * day)
		if st := r.Status(); st.Rotations != 1 || !st.NotAfter.After(time.Now()) {
			t.Errorf("after the end of the CA: %+v", st)
		}
	})
}

type unreadable struct {
	cluster
	blind Target
}

func (o *unreadable) ReadTarget(ctx context.Context, t kube.Target) (kube.TargetState, error) {
	if t.String() == o.blind.String() {
		return kube.TargetState{}, fmt.Errorf("%s: no permission", t)
	}
	return o.cluster.ReadTarget(ctx, t)
}

func TestForeignSecret(t *testing.T) {
	inBubble(t, "at the start", func(t *testing.T, f *fakeCluster) {
		f.setSecret(map[string][]byte{"tls.crt": []byte("x"), "tls.key": []byte("y")})
		r := startReplica(t, testOptions(), f)
		err := <-r.ended
		if !errors.Is(err, errForeignSecret) || !strings.Contains(err.Error(), "hooks/ca") || !strings.Contains(err.Error(), "tls.crt, tls.key") {
			t.Errorf("got %v", err)
		}
		if len(f.data()) != 2 {
			t.Error("it was written over")
		}
	})
	inBubble(t, "later", func(t *testing.T, f *fakeCluster) {
		r := startReplica(t, testOptions(), f)
		defer r.stop(t)
		settle()
		f.setSecret(map[string][]byte{"password": []byte("x")})
		elapse(30 * day)
		if err := r.call(f.bundleAt(webhooks, time.Now())); err != nil {
			t.Error(err)
		}
		want := "Secret hooks/ca: the Secret contains data that is not an admitkit CA: it has the keys password: choose another name, or delete this Secret"
		if st := r.Status(); !errors.Is(st.Err, errForeignSecret) || st.Err.Error() != want || !st.Trusted || len(f.data()) != 1 {
			t.Errorf("status %+v", st)
		}
	})
}

// A problem is logged once when it begins and once when it ends. Keys are never logged.
func TestLog(t *testing.T) {
	inBubble(t, "log", func(t *testing.T, f *fakeCluster) {
		var lines []string
		away := &failing{cluster: f}
		o := testOptions()
		o.Logger = funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})
		r := startReplica(t, o, away)
		settle()
		away.set(errFault)
		elapse(time.Hour)
		away.set(nil)
		settle()
		r.stop(t)
		all := strings.Join(lines, "\n")
		if strings.Count(all, errFault.Error()) != 1 || strings.Count(all, "no longer need attention") != 1 || strings.Contains(all, "PRIVATE") {
			t.Errorf("the log is\n%s", all)
		}
	})
}

// TestStopIsNotAnError stops a source in the middle of a request. The source must not log a problem.
func TestStopIsNotAnError(t *testing.T) {
	inBubble(t, "stop", func(t *testing.T, f *fakeCluster) {
		var lines []string
		o := testOptions()
		o.Logger = funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})
		hangs := &lagging{cluster: f, random: rand.New(rand.NewPCG(1, 1)), most: 100 * time.Hour}
		r := startReplica(t, o, hangs)
		elapse(time.Second)
		r.stop(t)
		if len(lines) > 0 {
			t.Errorf("the log is %q", lines)
		}
	})
}

func TestStartedTwice(t *testing.T) {
	inBubble(t, "twice", func(t *testing.T, f *fakeCluster) {
		r := startReplica(t, testOptions(), f)
		defer r.stop(t)
		synctest.Wait()
		if err := r.Start(t.Context()); err == nil {
			t.Error("started twice")
		}
	})
	s := newSelfManaged(testOptions(), nil)
	if _, err := s.GetCertificate(&tls.ClientHelloInfo{}); err == nil {
		t.Error("a certificate before the start")
	}
	if s.Bundle() != nil || Ready(s)(t.Context()) == nil {
		t.Error("ready before the start")
	}
}
