// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"bytes"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

func sampleState(t testing.TB) *state {
	t.Helper()
	s := &state{generation: 7}
	now := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	var all []*authority
	for range 4 {
		a, err := newAuthority("sample", ECDSAP256, now, 365*day, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, a)
	}
	s.signing, s.next = all[0], all[1]
	s.retiring = []retiring{{cert: all[2].cert, until: now.Add(day)}, {all[3].cert, now.Add(day), "somewhere"}}
	s.retired = []retired{{id: all[0].id(), until: now.Add(day)}}
	s.sort()
	return s
}

// A stored state is read back unchanged and encodes to the same bytes again.
func TestStateRoundTrip(t *testing.T) {
	s := sampleState(t)
	data, err := s.encode()
	if err != nil {
		t.Fatal(err)
	}
	again, err := decodeState(data)
	if err != nil {
		t.Fatal(err)
	}
	data2, err := again.encode()
	if err != nil {
		t.Fatal(err)
	}
	if !maps.EqualFunc(data, data2, bytes.Equal) {
		t.Errorf("got\n%s\nwant\n%s", data2[stateKey], data[stateKey])
	}
	if n := len(parseBundle(data[bundleKey])); n != 3 {
		t.Errorf("%d certificates in %s, want those of the CAs that sign, will sign and did sign", n, bundleKey)
	}
}

func TestDecodeState(t *testing.T) {
	data, err := sampleState(t).encode()
	if err != nil {
		t.Fatal(err)
	}
	with := func(old, replacement string) map[string][]byte {
		text := strings.Replace(string(data[stateKey]), old, replacement, 1)
		if text == string(data[stateKey]) {
			t.Fatalf("%q is not in the state", old)
		}
		return map[string][]byte{stateKey: []byte(text), sumKey: sumOf([]byte(text))}
	}
	rows := []struct {
		name string
		data map[string][]byte
		want error
		says string
	}{
		{"nothing", nil, errEmptySecret, ""},
		{"empty values", map[string][]byte{stateKey: {}, "tls.crt": nil}, errEmptySecret, ""},
		{"a wish", map[string][]byte{rotateKey: []byte("now")}, errEmptySecret, ""},
		{"the bundle only", map[string][]byte{bundleKey: data[bundleKey]}, errEmptySecret, ""},
		{"data of another client", map[string][]byte{"user": []byte("x"), "password": []byte("x")}, errForeignSecret, "password, user"},
		{"of a newer program", with(`"version": 1`, `"version": 2`), errForeignSecret, "version 2"},
		{"no JSON", map[string][]byte{stateKey: []byte("x"), sumKey: sumOf([]byte("x"))}, errCorruptSecret, "invalid character"},
		{"another digit", map[string][]byte{stateKey: bytes.Replace(data[stateKey], []byte("2026"), []byte("2025"), 1), sumKey: data[sumKey]}, errCorruptSecret, sumKey},
		{"no sum", map[string][]byte{stateKey: data[stateKey]}, errCorruptSecret, sumKey},
		{"no CA", map[string][]byte{stateKey: []byte("{}"), sumKey: sumOf([]byte("{}"))}, errCorruptSecret, "no CA"},
		{"half a certificate", with("END CERTIFICATE", ""), errCorruptSecret, "signing"},
		{"half a key", with("END PRIVATE KEY", ""), errCorruptSecret, "the key is not PEM"},
		{"no key", with(`"key"`, `"nokey"`), errCorruptSecret, "the key is missing"},
	}
	for _, row := range rows {
		_, err := decodeState(row.data)
		if !errors.Is(err, row.want) || !strings.Contains(err.Error(), row.says) || strings.Contains(err.Error(), "BEGIN") {
			t.Errorf("%s: got %v", row.name, err)
		}
	}
	swapped := sampleState(t)
	swapped.signing = &authority{cert: swapped.next.cert, key: swapped.signing.key}
	data, err = swapped.encode()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := decodeState(data); !errors.Is(err, errCorruptSecret) || !strings.Contains(err.Error(), "does not belong to the certificate") {
		t.Errorf("a key of another certificate: %v", err)
	}
}

// Any content of the Secret is read without a panic, and a state that was read can be stored.
func FuzzDecodeState(f *testing.F) {
	data, err := sampleState(f).encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data[stateKey])
	f.Add([]byte(`{"version":1,"signing":{},"next":null,"retiring":[{}],"retired":[{}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := decodeState(map[string][]byte{stateKey: text, sumKey: sumOf(text)})
		if err != nil {
			return
		}
		data, err := s.encode()
		if err != nil {
			t.Fatal(err)
		}
		again, err := decodeState(data)
		if err != nil || !again.signer().cert.Equal(s.signer().cert) {
			t.Fatalf("%v\n%s", err, text)
		}
	})
}

func FuzzParseBundle(f *testing.F) {
	f.Add(bundle(sampleState(f).trusted()))
	f.Add([]byte("\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		all := parseBundle(text)
		var written []byte
		for _, c := range all {
			written = append(written, encodeCertificate(c)...)
		}
		if again := parseBundle(written); len(again) != len(all) {
			t.Fatalf("%d certificates, and %d when they are written and read", len(all), len(again))
		}
	})
}

// TestForeignAndOurs has a CA of the source that is also recorded as a foreign CA, as can happen after a loss of the
// Secret. When the foreign record expires, the CA must stay trusted.
func TestForeignAndOurs(t *testing.T) {
	s := sampleState(t)
	ours := s.retiring[slices.IndexFunc(s.retiring, func(r retiring) bool { return r.target == "" })]
	until := ours.until.Add(-time.Hour)
	s.retiring = append(s.retiring, retiring{ours.cert, until, "somewhere"})
	s.dropEnded(until)
	if !s.trusts(ours.cert) || s.hasRetired(fingerprint(ours.cert), true) {
		t.Error("ours is not trusted any more")
	}
	s.retire(retired{id: fingerprint(ours.cert), until: until, foreign: true}) // as another replica recorded it
	if !s.trusts(ours.cert) {
		t.Error("ours is not trusted any more, for what another replica retired")
	}
	s.dropEnded(ours.until)
	if s.trusts(ours.cert) || !s.hasRetired(fingerprint(ours.cert), false) {
		t.Error("ours is not retired")
	}
}
