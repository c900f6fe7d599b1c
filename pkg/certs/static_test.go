// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"bytes"
	"context"
	"crypto/tls"
	"testing"
	"testing/synctest"
	"time"

	"github.com/admitkit/admitkit/pkg/certs/internal/kubetest"
)

func TestStatic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, 0, 10*time.Hour)
		pair, err := tls.X509KeyPair(p.cert, p.key)
		if err != nil {
			t.Fatal(err)
		}
		pair.Leaf = nil // a tls.Certificate made by hand has no Leaf
		s := Static(pair, p.ca)
		ctx, stop := context.WithCancel(t.Context())
		stopped := make(chan error, 1)
		go func() { stopped <- s.Start(ctx) }()
		synctest.Wait()
		c, err := s.GetCertificate(nil)
		if err != nil || !c.Leaf.Equal(p.leaf) {
			t.Errorf("got %v, %v", c, err)
		}
		if !bytes.Equal(s.Bundle(), p.ca) {
			t.Errorf("got bundle %s", s.Bundle())
		}
		st := s.Status()
		if st.Err != nil || !st.Trusted || !st.NotAfter.Equal(p.leaf.NotAfter) || st.CANotAfter.IsZero() || Ready(s)(t.Context()) != nil {
			t.Errorf("got %+v", st)
		}
		<-time.After(11 * time.Hour)
		kubetest.WantError(t, s.Status().Err, nil, "expired at")
		kubetest.WantError(t, Ready(s)(t.Context()), nil, "expired at")
		stop()
		if err := <-stopped; err != nil {
			t.Error(err)
		}
		kubetest.WantError(t, s.Start(t.Context()), nil, "was already started")
	})
}

func TestStaticArguments(t *testing.T) {
	p, other := newPair(t, 0, time.Hour), newPair(t, 0, time.Hour)
	pair, err := tls.X509KeyPair(p.cert, p.key)
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := tls.X509KeyPair(other.cert, other.key)
	if err != nil {
		t.Fatal(err)
	}
	rows := []struct {
		why         string
		certificate tls.Certificate
		bundle      []byte
		want        string
	}{
		{"nothing", tls.Certificate{}, nil, "no certificate with a key"},
		{"no key", tls.Certificate{Certificate: pair.Certificate}, nil, "no certificate with a key"},
		{"garbage", tls.Certificate{Certificate: [][]byte{{1}}, PrivateKey: pair.PrivateKey}, nil, "the certificate to serve: x509: "},
		{"another key", tls.Certificate{Certificate: pair.Certificate, PrivateKey: foreign.PrivateKey}, nil, "the key does not match the certificate"},
		{"a bundle without certificates", pair, []byte("x"), "the bundle: there is no certificate in it"},
	}
	for _, row := range rows {
		t.Run(row.why, func(t *testing.T) {
			s := Static(row.certificate, row.bundle)
			kubetest.WantError(t, s.Start(t.Context()), nil, row.want)
			_, err := s.GetCertificate(nil)
			kubetest.WantError(t, err, nil, row.want)
			kubetest.WantError(t, s.Status().Err, nil, row.want)
			kubetest.WantError(t, Ready(s)(t.Context()), nil, row.want)
			if s.Bundle() != nil {
				t.Error("there is a bundle")
			}
		})
	}
	if s := Static(pair, nil); s.Bundle() != nil || Ready(s)(t.Context()) != nil || !s.Status().CANotAfter.IsZero() {
		t.Errorf("without a bundle: %+v", s.Status())
	}
	if s := Static(pair, other.ca); Ready(s)(t.Context()) == nil || !bytes.Equal(s.Bundle(), other.ca) {
		t.Errorf("with the bundle of another: %+v", s.Status())
	}
}
