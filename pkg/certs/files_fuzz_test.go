// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"crypto"
	"testing"
	"time"
)

// FuzzParsePair parses random files as a certificate and its key. The key of each parsed pair must belong to the
// certificate. The check of a pair must either trust it or return an error.
func FuzzParsePair(f *testing.F) {
	p := newPair(f, 0, time.Hour)
	f.Add(p.cert, p.key, p.ca)
	f.Add(append(append([]byte("x\n"), p.cert...), p.ca...), append(p.key, p.cert...), append(p.ca, p.cert...))
	f.Add(p.key, p.cert, []byte{})
	f.Add([]byte(" \n"), []byte(nil), p.key)
	f.Fuzz(func(t *testing.T, cert, key, ca []byte) {
		pair, err := parsePair("/dir/tls.crt", cert, "/dir/tls.key", key)
		if err != nil {
			return
		}
		if pair.Leaf == nil || !samePublicKey(pair.Leaf.PublicKey, pair.PrivateKey.(crypto.Signer).Public()) {
			t.Errorf("got a pair that does not belong together: %v", pair)
		}
		if err := Static(*pair, nil).Status().Err; err == nil && len(pair.Leaf.DNSNames)+len(pair.Leaf.IPAddresses) == 0 {
			t.Error("a certificate without DNS names has no problem")
		}
		r, err := newRoots(ca)
		if err != nil {
			return
		}
		if st := r.judge(pair, time.Now()); st.Trusted && st.CANotAfter.IsZero() || !st.Trusted && st.Err == nil {
			t.Errorf("got %+v", st)
		}
		r.prefers(pair, pair, time.Now())
	})
}
