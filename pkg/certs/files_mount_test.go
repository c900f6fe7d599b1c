// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"

	"github.com/admitkit/admitkit/internal/reload"
	"github.com/admitkit/admitkit/pkg/certs/internal/kubetest"
)

// A testPair has the contents of the files tls.crt, tls.key and ca.crt.
type testPair struct {
	cert, key, ca []byte
	leaf          *x509.Certificate
}

// newPair generates a certificate and key with their own CA. They are valid between two times relative to now.
func newPair(t testing.TB, from, to time.Duration) testPair {
	t.Helper()
	return pairOf(t, testAuthority(t), from, to)
}

func testAuthority(t testing.TB) *authority {
	t.Helper()
	ca, err := newAuthority("test", ECDSAP256, time.Now(), 100*365*24*time.Hour, 365*24*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return ca
}

func pairOf(t testing.TB, ca *authority, from, to time.Duration) testPair {
	t.Helper()
	now := time.Now()
	c, err := ca.issue(names{dns: []string{"hook.ns.svc"}}, ECDSAP256, now, now.Add(to), -from)
	if err != nil {
		t.Fatal(err)
	}
	key, err := encodeKey(c.PrivateKey.(crypto.Signer))
	if err != nil {
		t.Fatal(err)
	}
	return testPair{cert: encodeCertificate(c.Leaf), key: key, ca: encodeCertificate(ca.cert), leaf: c.Leaf}
}

// A mount is a folder with certificate files, and the source that reads them.
type mount struct {
	t       *testing.T
	dir     string
	source  Source
	log     *kubetest.LogLines
	stop    context.CancelFunc
	stopped chan error
}

func newMount(t *testing.T) *mount {
	return &mount{t: t, dir: t.TempDir(), log: kubetest.NewLogLines()}
}

func (m *mount) path(name string) string { return filepath.Join(m.dir, name) }

func (m *mount) write(name string, content []byte) {
	m.t.Helper()
	if err := os.WriteFile(m.path(name), content, 0o600); err != nil {
		m.t.Fatal(err)
	}
}

func (m *mount) put(p testPair) {
	m.t.Helper()
	m.write("tls.crt", p.cert)
	m.write("tls.key", p.key)
	m.write("ca.crt", p.ca)
}

// start starts the source in the synctest bubble of the test.
func (m *mount) start(caFile string) {
	o := FilesOptions{Logger: logr.New(m.log), Interval: testInterval}
	if caFile != "" {
		o.CAFile = m.path(caFile)
	}
	m.source = Files(m.path("tls.crt"), m.path("tls.key"), o)
	ctx, stop := context.WithCancel(m.t.Context())
	m.stop, m.stopped = stop, make(chan error, 1)
	m.t.Cleanup(stop)
	go func() { m.stopped <- m.source.Start(ctx) }()
	synctest.Wait()
}

const testInterval = 5 * time.Minute // long, because these tests last days

// tick waits until the source has checked the files once more.
func (m *mount) tick() {
	<-time.After(testInterval + 6*reload.DefaultPause)
	synctest.Wait()
}

// want checks the served certificate and the Status.
func (m *mount) want(p testPair, ready bool, problem string) {
	m.t.Helper()
	c, err := m.source.GetCertificate(nil)
	if err != nil {
		m.t.Fatal(err)
	}
	st := m.source.Status()
	if !c.Leaf.Equal(p.leaf) {
		m.t.Errorf("serves the certificate that ends at %s, want %s", c.Leaf.NotAfter, p.leaf.NotAfter)
	}
	if !st.NotAfter.Equal(c.Leaf.NotAfter) || !st.NotBefore.Equal(c.Leaf.NotBefore) {
		m.t.Errorf("Status says %s to %s", st.NotBefore, st.NotAfter)
	}
	if err := Ready(m.source)(m.t.Context()); (err == nil) != ready {
		m.t.Errorf("Ready says %v", err)
	}
	m.wantStatusErr(problem)
}

func (m *mount) wantStatusErr(problem string) {
	m.t.Helper()
	err := m.source.Status().Err
	if (err == nil) != (problem == "") || err != nil && !strings.Contains(err.Error(), problem) {
		m.t.Errorf("Status says %v, want %q", err, problem)
	}
	if err != nil && !strings.Contains(err.Error(), m.dir) {
		m.t.Errorf("%q names no file", err)
	}
}

// lines returns the lines logged since the last call.
func (m *mount) lines() []string {
	var all []string
	for len(m.log.Lines) > 0 {
		all = append(all, <-m.log.Lines)
	}
	return all
}

// signed generates a CA that can sign CAs. If by is nil, the CA is self-signed.
func signed(t testing.TB, by *authority) *authority {
	t.Helper()
	a := testAuthority(t)
	template := *a.cert
	template.MaxPathLen, template.MaxPathLenZero = -1, false
	if by == nil {
		by = &authority{cert: &template, key: a.key}
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, by.cert, a.key.Public(), by.key)
	if err != nil {
		t.Fatal(err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	return a
}
