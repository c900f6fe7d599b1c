// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/admitkit/admitkit/pkg/certs/internal/kube"
)

// TestKeyTypes issues certificates for each type of key. Their serial numbers must differ, and each certificate must
// verify.
func TestKeyTypes(t *testing.T) {
	serials := map[string]bool{}
	for _, kind := range []KeyType{ECDSAP256, ECDSAP384, RSA2048, Ed25519} {
		ca, err := newAuthority("test", kind, time.Now(), time.Hour, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		text, err := encodeKey(ca.key)
		if err != nil {
			t.Fatal(err)
		}
		ca, err = parseAuthority(encodeCertificate(ca.cert), text)
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			leaf, err := ca.issue(names{dns: []string{"a"}}, kind, time.Now(), time.Now().Add(2*time.Hour), time.Minute)
			if err != nil {
				t.Fatal(err)
			}
			if leaf.Leaf.NotAfter.After(ca.cert.NotAfter) {
				t.Error("a certificate outlives its CA")
			}
			o := newObservation(webhooks, kube.TargetState{Entries: []kube.Entry{{Bundle: encodeCertificate(ca.cert)}}}, nil)
			if err := o.verify(leaf.Leaf, time.Now()); err != nil {
				t.Error(err)
			}
			serials[leaf.Leaf.SerialNumber.String()] = true
		}
		serials[ca.cert.SerialNumber.String()] = true
	}
	if len(serials) != 16 {
		t.Errorf("%d serial numbers for 16 certificates", len(serials))
	}
}

func TestOptionsAreChecked(t *testing.T) {
	rows := []struct {
		change func(*Options)
		want   string
	}{
		{func(o *Options) { o.Namespace = "" }, "Namespace"},
		{func(o *Options) { o.Secret = "UPPER" }, "Secret \"UPPER\""},
		{func(o *Options) { o.DNSNames = nil }, "at least one name"},
		{func(o *Options) { o.DNSNames = []string{"a b"} }, `"a b" in DNSNames`},
		{func(o *Options) { o.IPAddresses = []net.IP{{1, 2}} }, "IPAddresses"},
		{func(o *Options) { o.Targets = []Target{{Kind: "Pod", Name: "x"}} }, `unknown kind "Pod"`},
		{func(o *Options) { o.Targets = []Target{{Kind: APIService}} }, "no name"},
		{func(o *Options) { o.Targets = []Target{{Kind: APIService, Name: "x", Owner: "me"}} }, "target APIService x: set both of OwnerAnnotation and Owner"},
		{func(o *Options) { o.Targets = []Target{webhooks, webhooks} }, "twice"},
		{func(o *Options) { o.Targets = []Target{{Kind: APIService, Name: "a", Webhooks: []string{"b"}}} }, "Webhooks is for"},
		{func(o *Options) { o.CALifetime = -1 }, "CALifetime"},
		{func(o *Options) { o.LeafLifetime = 1 }, "LeafLifetime is 1ns, want 1s or more: a number without a unit means nanoseconds, write 7*24*time.Hour"},
		{func(o *Options) { o.CALifetime = 365 }, "CALifetime is 365ns"},
		{func(o *Options) { o.Settle = 60 }, "Settle is 60ns, want 1ms or more"},
		{func(o *Options) { o.CALifetime, o.LeafLifetime = time.Hour, time.Hour }, "too short"},
		{func(o *Options) { o.KeyType = "DSA" }, `unknown key type "DSA"`},
	}
	for _, row := range rows {
		o := testOptions()
		row.change(&o)
		if _, err := o.completed(); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("got %v, want %q", err, row.want)
		}
	}
	for _, life := range []time.Duration{time.Minute, time.Hour, day, 30 * day, 3650 * day} {
		o := testOptions()
		o.CALifetime, o.Interval = life, 0
		if _, err := o.completed(); err != nil {
			t.Errorf("defaults for a CALifetime of %s: %v", life, err)
		}
	}
	if _, err := NewSelfManaged(testOptions()); err == nil || !strings.Contains(err.Error(), "Config is nil") {
		t.Errorf("got %v", err)
	}
}
