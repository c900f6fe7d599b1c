// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// A state has all CAs and the use of each. The replicas share it in the Secret. It is immutable: a change returns a new one.
//
// A CA that is no longer needed is recorded as retired. If a CA is missing in the Secret and not recorded as retired,
// it was lost, and a replica that knows it writes it again. So a caBundle loses a CA only on purpose, even if the
// replica that writes it has an old view.
type state struct {
	generation int64      // grows with each write
	signing    *authority // signs certificates; nil before the first CA has settled
	next       *authority // trusted, and will sign next; nil except during a rotation
	retiring   []retiring // no longer sign, and are still trusted; sorted by the end of trust, then by ID
	retired    []retired  // no longer trusted; kept until their certificates expire; sorted by ID
}

type retiring struct {
	cert  *x509.Certificate
	until time.Time // when all certificates of the CA have expired
	// target is the only target that trusts a foreign CA: the one in which it was found. It is empty for a CA of this
	// source, which all targets trust.
	target string
}

type retired struct {
	id    string
	until time.Time // when the certificate expires
	// foreign means that the CA was kept as a foreign CA of a target. The source may still have the same CA as its own.
	foreign bool
}

// The keys in the data of the Secret. Data that has other keys, but no state, belongs to another program.
const (
	stateKey  = "state.json"
	sumKey    = "state.sha256"
	bundleKey = "ca.crt" // for users and other clients; the source never reads it
	rotateKey = "rotate" // a user adds it to request a new CA
)

// The faults in the data of a Secret.
var (
	errEmptySecret   = errors.New("the Secret is empty")
	errForeignSecret = errors.New("the Secret contains data that is not an admitkit CA")
	errCorruptSecret = errors.New("the Secret is damaged")
)

// trusted returns the certificates of this source that clients must trust, the signing one first.
func (s *state) trusted() []*x509.Certificate { return s.trustedBy("") }

// trustedBy returns the certificates that a target must trust: the certificates of this source, and the foreign ones
// in the target.
func (s *state) trustedBy(target string) []*x509.Certificate {
	var all []*x509.Certificate
	for _, a := range []*authority{s.signing, s.next} {
		if a != nil {
			all = append(all, a.cert)
		}
	}
	for _, r := range s.retiring {
		if r.target == "" || r.target == target {
			all = append(all, r.cert)
		}
	}
	return all
}

// hasForeign reports whether a target trusts a foreign CA.
func (s *state) hasForeign() bool {
	return slices.ContainsFunc(s.retiring, func(r retiring) bool { return r.target != "" })
}

func (s *state) trusts(c *x509.Certificate) bool { return slices.ContainsFunc(s.trusted(), c.Equal) }

// hasRetired reports whether a certificate was retired. If foreign is set, a certificate that was retired as
// foreign counts, too.
func (s *state) hasRetired(id string, foreign bool) bool {
	return slices.ContainsFunc(s.retired, func(r retired) bool { return r.id == id && (foreign || !r.foreign) })
}

// bundle returns certificates as PEM.
func bundle(certificates []*x509.Certificate) []byte {
	var text []byte
	for _, c := range certificates {
		text = append(text, encodeCertificate(c)...)
	}
	return text
}

// signer returns the CA that signs now. Before the first CA has settled, no client trusts any CA, so the next CA signs.
func (s *state) signer() *authority {
	if s.signing != nil {
		return s.signing
	}
	return s.next
}

func (s *state) phase() Phase {
	switch {
	case s == nil || s.signing == nil:
		return Starting
	case s.next != nil:
		return Publishing
	case len(s.retiring) > 0:
		return Retiring
	}
	return Stable
}

// retire records that a CA is no longer trusted. It does nothing if the state still trusts the CA as one of its own,
// or has the same record already.
func (s *state) retire(r retired) {
	ours := slices.ContainsFunc(s.trusted(), func(c *x509.Certificate) bool { return fingerprint(c) == r.id })
	if !ours && !slices.ContainsFunc(s.retired, func(x retired) bool { return x.id == r.id && x.foreign == r.foreign }) {
		s.retired = append(s.retired, r)
	}
}

func (s *state) clone() *state {
	c := *s
	c.retiring, c.retired = slices.Clone(s.retiring), slices.Clone(s.retired)
	return &c
}

// sort puts the CAs into a fixed order, so that equal states have equal bytes.
func (s *state) sort() {
	slices.SortFunc(s.retiring, func(a, b retiring) int {
		return cmp.Or(a.until.Compare(b.until), bytes.Compare(a.cert.Raw, b.cert.Raw), strings.Compare(a.target, b.target))
	})
	slices.SortFunc(s.retired, func(a, b retired) int { return cmp.Or(strings.Compare(a.id, b.id), a.until.Compare(b.until)) })
}

// document is the JSON in which a state is stored in the Secret.
type document struct {
	Version    int                `json:"version"`
	Generation int64              `json:"generation"`
	Signing    *authorityDocument `json:"signing,omitempty"`
	Next       *authorityDocument `json:"next,omitempty"`
	Retiring   []retiringDocument `json:"retiring,omitempty"`
	Retired    []retiredDocument  `json:"retired,omitempty"`
}

type authorityDocument struct {
	Certificate string `json:"certificate"`
	Key         string `json:"key"`
	Outlives    string `json:"outlives,omitempty"`
}

type retiringDocument struct {
	Certificate string    `json:"certificate"`
	Until       time.Time `json:"until"`
	Target      string    `json:"target,omitempty"`
}

type retiredDocument struct {
	SHA256  string    `json:"sha256"`
	Until   time.Time `json:"until"`
	Foreign bool      `json:"foreign,omitempty"`
}

// documentVersion grows with every change of the format. A new member is a change, too, because an older program
// would drop it.
const documentVersion = 1

// encode returns the data of the Secret.
func (s *state) encode() (map[string][]byte, error) {
	d := document{Version: documentVersion, Generation: s.generation}
	var err error
	if d.Signing, err = encodeAuthority(s.signing); err != nil {
		return nil, err
	}
	if d.Next, err = encodeAuthority(s.next); err != nil {
		return nil, err
	}
	for _, r := range s.retiring {
		d.Retiring = append(d.Retiring, retiringDocument{string(encodeCertificate(r.cert)), r.until.UTC(), r.target})
	}
	for _, r := range s.retired {
		d.Retired = append(d.Retired, retiredDocument{r.id, r.until.UTC(), r.foreign})
	}
	text, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return nil, err
	}
	return map[string][]byte{stateKey: text, sumKey: sumOf(text), bundleKey: bundle(s.trusted())}, nil
}

// sumOf returns the checksum of an encoded state. The checksum detects damage that leaves valid JSON: one changed digit
// could end the trust in a CA too soon.
func sumOf(text []byte) []byte {
	sum := sha256.Sum256(text)
	return []byte(hex.EncodeToString(sum[:]))
}

func encodeAuthority(a *authority) (*authorityDocument, error) {
	if a == nil {
		return nil, nil
	}
	key, err := encodeKey(a.key)
	if err != nil {
		return nil, fmt.Errorf("cannot encode the key of a CA: %w", err)
	}
	d := &authorityDocument{Certificate: string(encodeCertificate(a.cert)), Key: string(key)}
	if a.outlives > 0 {
		d.Outlives = a.outlives.String()
	}
	return d, nil
}

// decodeState reads the data of the Secret. Its errors are, or wrap, errEmptySecret, errForeignSecret or
// errCorruptSecret.
func decodeState(data map[string][]byte) (*state, error) {
	text := data[stateKey]
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, withoutState(data)
	}
	if !bytes.Equal(data[sumKey], sumOf(text)) {
		return nil, fmt.Errorf("%w: %s does not match the checksum in %s", errCorruptSecret, stateKey, sumKey)
	}
	var d document
	if err := json.Unmarshal(text, &d); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", errCorruptSecret, stateKey, err)
	}
	if d.Version > documentVersion {
		return nil, fmt.Errorf("%w: %s has version %d, but this program supports only version %d: a newer program wrote it",
			errForeignSecret, stateKey, d.Version, documentVersion)
	}
	s := &state{generation: d.Generation}
	var errs []error
	s.signing = decodeAuthority("signing", d.Signing, &errs)
	s.next = decodeAuthority("next", d.Next, &errs)
	for i, r := range d.Retiring {
		a, err := parseAuthority([]byte(r.Certificate), nil)
		if err != nil {
			errs = append(errs, fmt.Errorf("retiring[%d]: %w", i, err))
			continue
		}
		s.retiring = append(s.retiring, retiring{a.cert, r.Until, r.Target})
	}
	for _, r := range d.Retired {
		s.retired = append(s.retired, retired{r.SHA256, r.Until, r.Foreign})
	}
	if s.signing == nil && s.next == nil && len(errs) == 0 {
		errs = append(errs, errors.New("there is no CA in it"))
	}
	if len(errs) > 0 {
		return nil, fmt.Errorf("%w: %s: %w", errCorruptSecret, stateKey, errors.Join(errs...))
	}
	s.sort()
	return s, nil
}

// withoutState returns the error for data without a state. The error is errForeignSecret if the data has keys of
// another program, and errEmptySecret otherwise. Other keys of the source can be there without a state: a client may
// have removed only the state, and a user may request a rotation before the first CA exists.
func withoutState(data map[string][]byte) error {
	var others []string
	for key, value := range data {
		if !slices.Contains([]string{bundleKey, rotateKey, stateKey, sumKey}, key) && len(value) > 0 {
			others = append(others, key)
		}
	}
	if len(others) == 0 {
		return errEmptySecret
	}
	slices.Sort(others)
	return fmt.Errorf("%w: it has the keys %s", errForeignSecret, strings.Join(others, ", "))
}

func decodeAuthority(what string, d *authorityDocument, errs *[]error) *authority {
	if d == nil {
		return nil
	}
	a, err := parseAuthority([]byte(d.Certificate), []byte(d.Key))
	if err == nil && a.key == nil {
		err = errors.New("the key is missing")
	}
	if err == nil && d.Outlives != "" {
		a.outlives, err = time.ParseDuration(d.Outlives)
	}
	if err != nil {
		*errs = append(*errs, fmt.Errorf("%s: %w", what, err))
		return nil
	}
	return a
}
