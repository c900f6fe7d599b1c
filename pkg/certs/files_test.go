// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"

	"github.com/admitkit/admitkit/pkg/certs/internal/kubetest"
)

func TestFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMount(t)
		one, two := newPair(t, -time.Hour, 24*time.Hour), newPair(t, -time.Hour, 48*time.Hour)
		late, old := newPair(t, 6*time.Hour, 72*time.Hour), newPair(t, -72*time.Hour, -time.Hour)
		m.put(one)
		m.start("")
		steps := []struct {
			why     string
			do      func()
			serves  testPair
			problem string // also logged, once
		}{
			{"nothing happens", func() {}, one, ""},
			{"the certificate is renewed, the key not yet", func() { m.write("tls.crt", two.cert) }, one, "do not match"},
			{"the key follows", func() { m.write("tls.key", two.key) }, two, ""},
			{"the key is removed", func() { os.Remove(m.path("tls.key")) }, two, "tls.key: no such file"},
			{"all files are removed", func() { os.RemoveAll(m.dir) }, two, "tls.crt: no such file"},
			{"the files are back, but empty", func() { _ = os.Mkdir(m.dir, 0o700); m.put(testPair{}) }, two, "tls.crt is empty"},
			{"without a key", func() { m.write("tls.crt", two.cert) }, two, "tls.key is empty"},
			{"with garbage", func() { m.write("tls.key", []byte("garbage")) }, two, "failed to find any PEM data in key input"},
			{"half written", func() { m.write("tls.crt", two.cert[:len(two.cert)/2]) }, two, "failed to find any PEM data in certificate input"},
			{"whole again", func() { m.put(two) }, two, ""},
			{"an older but valid one is a deliberate change", func() { m.put(one) }, one, ""},
			{"an expired one", func() { m.put(old) }, one, "the certificate expired at"},
			{"one that is not valid yet", func() { m.put(late) }, one, "not valid before"},
			{"it becomes valid", func() { <-time.After(6 * time.Hour) }, late, ""},
			{"garbage in place of the certificate", func() { m.write("tls.crt", []byte("-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n")) }, late, "x509: "},
			{"corrected in the end", func() { m.put(two) }, two, ""},
			{"with more around it", func() { m.write("tls.crt", slices.Concat([]byte("# comment\n"), two.cert, one.ca)) }, two, ""},
		}
		for _, step := range steps {
			m.lines()
			step.do()
			m.tick()
			m.tick() // the problem must not be logged again
			t.Log(step.why)
			m.want(step.serves, true, step.problem)
			var errs []string
			for _, line := range m.lines() {
				if strings.HasPrefix(line, "error") {
					errs = append(errs, line)
				}
			}
			if step.problem == "" && len(errs) > 0 || step.problem != "" && (len(errs) != 1 || !strings.Contains(errs[0], step.problem)) {
				t.Errorf("logged %q, want %q", errs, step.problem)
			}
		}
		if got := m.source.Status().Renewals; got != 5 { // the pairs two, one, late, two, and two with a chain
			t.Errorf("got %d renewals, want 5", got)
		}
		m.stop()
		if err := <-m.stopped; err != nil {
			t.Error(err)
		}
	})
}

func TestFilesExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMount(t)
		one := newPair(t, 0, 10*time.Hour)
		m.put(one)
		m.start("")
		<-time.After(9*time.Hour - testInterval)
		m.want(one, true, "")
		<-time.After(2 * testInterval)
		m.want(one, true, "expires at "+inUTC(one.leaf.NotAfter)+", and has not been renewed")
		<-time.After(time.Hour)
		m.want(one, false, "expired at "+inUTC(one.leaf.NotAfter)+": renew it")
		older := newPair(t, -10*time.Hour, -2*time.Hour)
		m.put(older)
		m.tick()
		m.want(one, false, "expired at "+inUTC(older.leaf.NotAfter))
		future := newPair(t, time.Hour, 10*time.Hour)
		m.put(future)
		m.tick()
		m.want(future, false, "not valid before "+inUTC(future.leaf.NotBefore))
		two := newPair(t, 0, 10*time.Hour)
		m.put(two)
		m.tick()
		m.want(two, true, "")
	})
}

func TestFilesAtStart(t *testing.T) {
	rows := []struct {
		why  string
		put  func(*mount)
		want string // the error; empty means that the pair is served, though the source is not ready
	}{
		{"no files", func(m *mount) {}, "tls.crt: no such file or directory; mount the Secret"},
		{"no key", func(m *mount) { m.write("tls.crt", newPair(m.t, 0, time.Hour).cert) }, "tls.key: no such file or directory"},
		{"no pair", func(m *mount) { m.put(newPair(m.t, 0, time.Hour)); m.write("tls.key", newPair(m.t, 0, time.Hour).key) }, "certificate and key do not match: tls: private key does not match public key"},
		{"the wrong way round", func(m *mount) { p := newPair(m.t, 0, time.Hour); m.put(testPair{cert: p.key, key: p.cert, ca: p.ca}) }, "PEM inputs may have been switched"},
		{"no CA file", func(m *mount) { m.put(newPair(m.t, 0, time.Hour)); os.Remove(m.path("ca.crt")) }, "ca.crt: no such file or directory: leave out the CA file if there is none"},
		{"a CA file without a CA", func(m *mount) { p := newPair(m.t, 0, time.Hour); m.put(testPair{cert: p.cert, key: p.key}) }, "ca.crt: there is no certificate in it"},
		{"too large", func(m *mount) { m.put(newPair(m.t, 0, time.Hour)); m.write("tls.crt", make([]byte, 2<<20)) }, "tls.crt is larger than"},
		{"expired", func(m *mount) { m.put(newPair(m.t, -2*time.Hour, -time.Hour)) }, ""},
		{"not yet valid", func(m *mount) { m.put(newPair(m.t, time.Hour, 2*time.Hour)) }, ""},
		{"of another CA", func(m *mount) { m.put(newPair(m.t, 0, time.Hour)); m.write("ca.crt", newPair(m.t, 0, time.Hour).ca) }, ""},
	}
	for _, row := range rows {
		t.Run(row.why, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMount(t)
				m.source = Files(m.path("tls.crt"), m.path("tls.key"), FilesOptions{})
				if _, err := m.source.GetCertificate(nil); !errors.Is(err, errNotStarted) || !errors.Is(m.source.Status().Err, errNotStarted) {
					t.Errorf("got %v before the start", err)
				}
				row.put(m)
				m.start("ca.crt")
				_, err := m.source.GetCertificate(nil)
				if row.want == "" {
					if readyErr := Ready(m.source)(t.Context()); err != nil || readyErr == nil {
						t.Errorf("got %v, and Ready says %v", err, readyErr)
					}
					m.stop()
					if err := <-m.stopped; err != nil {
						t.Errorf("Start returned %v", err)
					}
				} else {
					kubetest.WantError(t, <-m.stopped, nil, "there is no certificate to serve: ", row.want, m.dir)
					kubetest.WantError(t, err, nil, "there is no serving certificate")
					if st := m.source.Status(); st.Err == nil || st.Trusted {
						t.Errorf("got %+v", st)
					}
				}
				kubetest.WantError(t, m.source.Start(t.Context()), nil, "was already started")
			})
		})
	}
}

// TestFilesInMountedSecret replaces the files as the kubelet does. They are symbolic links into the folder ..data,
// which is a symbolic link itself. The kubelet replaces only ..data. The source must serve the new pair each time.
func TestFilesInMountedSecret(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMount(t)
		ca := testAuthority(t)
		volume := func(name string, p testPair) {
			dir := m.path(name)
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			for file, content := range map[string][]byte{"tls.crt": p.cert, "tls.key": p.key, "ca.crt": p.ca} {
				if err := os.WriteFile(filepath.Join(dir, file), content, 0o600); err != nil {
					t.Fatal(err)
				}
				if err := os.Symlink(filepath.Join("..data", file), m.path(file)); err != nil && !errors.Is(err, fs.ErrExist) {
					t.Fatal(err)
				}
			}
			if err := errors.Join(os.Symlink(name, m.path("..tmp")), os.Rename(m.path("..tmp"), m.path("..data"))); err != nil {
				t.Fatal(err)
			}
		}
		last := pairOf(t, ca, 0, time.Hour)
		volume("..1", last)
		m.start("ca.crt")
		m.want(last, true, "")
		for i := 2; i < 10; i++ {
			previous := fmt.Sprint("..", i-1)
			last = pairOf(t, ca, 0, time.Hour)
			volume(fmt.Sprint("..", i), last)
			os.RemoveAll(m.path(previous))
			m.tick()
			m.want(last, true, "")
		}
	})
}

func TestFilesWithCA(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMount(t)
		ca := testAuthority(t)
		one := pairOf(t, ca, 0, 24*time.Hour)
		m.put(one)
		m.start("ca.crt")
		m.want(one, true, "")
		if got := m.source.Bundle(); !bytes.Equal(got, one.ca) {
			t.Errorf("got bundle %s", got)
		}
		m.source.Bundle()[0] = 'x' // Bundle returns a copy, so this changes nothing in the source
		if got := m.source.Status().CANotAfter; !got.Equal(ca.cert.NotAfter) {
			t.Errorf("the CA ends at %s, want %s", got, ca.cert.NotAfter)
		}

		// An untrusted pair waits until the CAs trust it, or until the served pair has expired.
		two := newPair(t, 0, 48*time.Hour)
		m.write("tls.crt", two.cert)
		m.write("tls.key", two.key)
		m.tick()
		m.want(one, true, "the CA file does not trust the certificate: x509: certificate signed by unknown authority")
		m.write("ca.crt", slices.Concat(one.ca, two.ca))
		m.tick()
		m.want(two, true, "")

		// A broken CA file does not stop the pair from being served.
		m.write("ca.crt", []byte("garbage"))
		m.tick()
		m.want(two, true, "ca.crt: there is no certificate in it")
		three := pairOf(t, ca, 0, 72*time.Hour)
		m.write("tls.crt", three.cert)
		m.write("tls.key", three.key)
		m.tick()
		m.want(three, true, "ca.crt: there is no certificate in it")
		m.write("ca.crt", two.ca)
		m.tick()
		m.want(three, false, "the CA file does not trust")
		m.put(two)
		m.tick()
		m.want(two, true, "")
		m.write("tls.crt", one.cert)
		m.write("tls.key", one.key)
		<-time.After(48 * time.Hour)
		synctest.Wait()
		m.want(two, false, "expired at")
	})
}

// TestFilesWithIntermediate adds the missing certificate of an intermediate CA to the certificate file. The source must
// then serve the whole chain and become ready.
func TestFilesWithIntermediate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMount(t)
		root := signed(t, nil)
		middle := signed(t, root)
		p := pairOf(t, middle, 0, time.Hour)
		m.put(testPair{cert: p.cert, key: p.key, ca: encodeCertificate(root.cert)})
		m.start("ca.crt")
		m.want(p, false, "unknown authority")
		m.write("tls.crt", slices.Concat(p.cert, encodeCertificate(middle.cert))) // a new chain, not a new certificate
		m.tick()
		m.want(p, true, "")
		if got := m.source.Status().CANotAfter; !got.Equal(root.cert.NotAfter) {
			t.Errorf("the CA ends at %s, want that of the root, %s", got, root.cert.NotAfter)
		}
	})
}

// TestFilesServe makes TLS handshakes while the files change. Every handshake must succeed.
func TestFilesServe(t *testing.T) {
	m := newMount(t)
	ca := testAuthority(t)
	m.put(pairOf(t, ca, 0, time.Hour))
	m.source = Files(m.path("tls.crt"), m.path("tls.key"), FilesOptions{Interval: time.Millisecond, Logger: logr.New(m.log)})
	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- m.source.Start(ctx) }()
	kubetest.Eventually(t, func() error { return Ready(m.source)(t.Context()) }, func(err error) bool { return err == nil })

	pool := x509.NewCertPool()
	pool.AddCert(ca.cert)
	for range 100 {
		p := pairOf(t, ca, 0, time.Hour)
		m.write("tls.crt", p.cert)
		handshake(t, m.source, pool)
		m.write("tls.key", p.key)
		handshake(t, m.source, pool)
		m.lines()
	}
	stop()
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

func handshake(t *testing.T, s Source, pool *x509.CertPool) {
	t.Helper()
	client, server := net.Pipe()
	served := make(chan error, 1)
	go func() { served <- tls.Server(server, TLSConfig(s)).HandshakeContext(t.Context()) }()
	if err := tls.Client(client, &tls.Config{RootCAs: pool, ServerName: "hook.ns.svc"}).HandshakeContext(t.Context()); err != nil {
		t.Error(err)
	}
	_ = client.Close()
	if err := <-served; err != nil {
		t.Log(err) // the client may close before it has read the tickets for its next session
	}
}
