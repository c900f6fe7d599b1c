// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/admitkit/admitkit/internal/textutil"
	"github.com/admitkit/admitkit/pkg/lint"
)

// A Connection is the result of a connection to a server of a Backend.
type Connection struct {
	// Address is the address of the server. Pod is the name of its Pod, or "". Via describes the route, such as "through
	// the kubelet".
	Address, Pod, Via string
	Problem           Problem
	Error             string
	// Chain has the certificates that the server presents, leaf first.
	Chain []*x509.Certificate
	// Answers has the answer for each path.
	Answers map[string]Answer
}

// A Problem is the reason why a connection or a handshake failed.
type Problem int

// The problems of connections. The zero value is a complete handshake.
const (
	// Refused means that no program listens.
	Refused Problem = iota + 1
	// Silent means that nothing answers.
	Silent
	// NoHost means that the host name has no address.
	NoHost
	// NotTLS means that the server answers, but not by TLS.
	NotTLS
	// Alert means that the server ends the handshake with a TLS alert.
	Alert
	// Broken means that the handshake fails in another way.
	Broken
)

// An Answer has the status codes of a GET and of a POST without a body. Post is 0 if it was not sent.
type Answer struct{ Get, Post int }

func (c *Connection) String() string {
	if c.Pod != "" {
		return "Pod " + c.Pod + " (" + c.Address + ")"
	}
	return c.Address
}

var checkOfProblem = map[Problem]string{
	Refused: "connection-refused", Silent: "connection-timeout", NoHost: "host-unknown", NotTLS: "not-tls", Alert: "handshake-failed", Broken: "handshake-failed",
}

// connections reports servers to which a connection or a TLS handshake fails.
func connections(s *Snapshot) []Finding {
	var found []Finding
	order, of := s.backends()
	for _, b := range order {
		for _, c := range s.Connections[b] {
			if c.Problem == 0 || len(c.Chain) > 0 && c.Problem == Alert {
				continue // a server that wants a client certificate sends an alert after its own certificate
			}
			f := find(checkOfProblem[c.Problem], b.String(), of[b], fmt.Sprintf("%s, tried %s: %s", c.String(), c.Via, c.Error)).with(b.commands()...)
			if s.mayDiffer(b, c.Problem) && !slices.ContainsFunc(of[b], s.fails) {
				f.Evidence = append(f.Evidence, "the API server may reach it from its own machine; --probe finds out")
				f = f.withSeverity(lint.Warning)
			}
			found = append(found, f)
		}
	}
	return found
}

// mayDiffer reports whether a connection from here can fail although the API server reaches the server: its machine can
// resolve other names and reach other addresses than this one.
func (s *Snapshot) mayDiffer(b Backend, p Problem) bool {
	service := s.Services[b.Service]
	outside := !b.IsService() || service != nil && service.Spec.Type == corev1.ServiceTypeExternalName
	return outside && p != NotTLS && p != Alert
}

// fails reports whether the API server itself says that calls of a target fail.
func (s *Snapshot) fails(t *Target) bool {
	c := s.CallsOf(t)
	return len(s.Failures[t]) > 0 || t.Unavailable != "" || c != nil && (isMuch(c.Failed, c.All) || isMuch(c.Ignored, c.All))
}

// commands returns commands that show the Pods of a Service.
func (b Backend) commands() []string {
	if !b.IsService() {
		return nil
	}
	in := namespaceFlag(b.Service.Namespace)
	return []string{"kubectl " + in + " get endpointslices -l kubernetes.io/service-name=" + b.Service.Name + " -o wide", "kubectl " + in + " logs service/" + b.Service.Name + " --tail=50"}
}

// certificates verifies the served certificates as the API server does (crypto/tls, verifyServerCertificate).
func certificates(s *Snapshot) []Finding {
	invalid := map[Caller]bool{} // the caBundle is invalid, so that another check reports it
	for _, f := range bundles(s) {
		for _, c := range f.Callers {
			invalid[c] = invalid[c] || f.Severity == lint.Error && f.Check != "AK507"
		}
	}
	var found []Finding
	for _, t := range s.Targets {
		if t.Unverified {
			continue
		}
		for _, c := range s.Connections[t.Backend] {
			if len(c.Chain) == 0 {
				continue
			}
			found = append(found, s.validity(t, &c)...)
			found = append(found, hostName(t, &c)...)
			if !invalid[t.caller()] {
				found = append(found, s.trust(t, &c)...)
			}
		}
	}
	return found
}

// validity reports a serving certificate that is not valid now or not for long.
func (s *Snapshot) validity(t *Target, c *Connection) []Finding {
	leaf := c.Chain[0]
	report := func(check, format string, at time.Time) []Finding {
		return []Finding{find(check, t.Backend.String(), []*Target{t}, fmt.Sprintf("%s serves a certificate that "+format, c, at.UTC().Format(time.RFC3339)))}
	}
	switch {
	case s.Now.After(leaf.NotAfter):
		return report("certificate-expired", "expired at %s", leaf.NotAfter)
	case s.Now.Before(leaf.NotBefore):
		return report("certificate-not-yet-valid", "is not valid before %s", leaf.NotBefore)
	case leaf.NotAfter.Sub(s.Now) < s.ExpiresWithin:
		return report("certificate-expires-soon", "expires at %s", leaf.NotAfter)
	}
	return nil
}

// hostName reports a serving certificate for another name.
func hostName(t *Target, c *Connection) []Finding {
	host := t.Backend.Host()
	err := c.Chain[0].VerifyHostname(host)
	if err == nil {
		return nil
	}
	kind := "DNS name"
	if net.ParseIP(host) != nil {
		kind = "IP address"
	}
	f := find("certificate-name", t.Backend.String(), []*Target{t}, fmt.Sprintf("%s: %s", c, strings.TrimPrefix(err.Error(), "x509: ")))
	f.Fix = fmt.Sprintf("Issue a certificate with the %s %s.", kind, host)
	return []Finding{f}
}

// trust reports a serving certificate that the caBundle does not trust. It ignores the validity of the certificate.
func (s *Snapshot) trust(t *Target, c *Connection) []Finding {
	leaf := c.Chain[0]
	options := x509.VerifyOptions{Intermediates: x509.NewCertPool(), CurrentTime: s.Now}
	if options.CurrentTime.After(leaf.NotAfter) {
		options.CurrentTime = leaf.NotAfter
	}
	if options.CurrentTime.Before(leaf.NotBefore) {
		options.CurrentTime = leaf.NotBefore
	}
	for _, one := range c.Chain[1:] {
		options.Intermediates.AddCert(one)
	}
	trusted := "the CAs of this machine"
	if len(t.Bundle) > 0 {
		options.Roots = x509.NewCertPool()
		options.Roots.AppendCertsFromPEM(t.Bundle)
		trusted = "the caBundle of " + t.Object() + ": " + textutil.Join(namesIn(t.Bundle), "and")
	}
	_, err := leaf.Verify(options)
	if err == nil {
		return nil
	}
	f := find("certificate-untrusted", t.Backend.String(), []*Target{t},
		fmt.Sprintf("%s: %s", c, strings.TrimPrefix(err.Error(), "x509: ")),
		fmt.Sprintf("its certificate is issued by %s", nameOfCA(leaf.Issuer, leaf.AuthorityKeyId)),
		fmt.Sprintf("the API server trusts %s", trusted))
	if len(t.Bundle) == 0 && errors.As(err, new(x509.UnknownAuthorityError)) {
		f = f.withSeverity(lint.Warning) // the machine of the API server may trust other CAs than this machine
	}
	return []Finding{f}
}

// namesIn returns the names of the certificates in a bundle.
func namesIn(bundle []byte) (names []string) {
	for {
		var block *pem.Block
		if block, bundle = pem.Decode(bundle); block == nil {
			return names
		}
		if c, err := x509.ParseCertificate(block.Bytes); err == nil && block.Type == "CERTIFICATE" {
			names = append(names, nameOfCA(c.Subject, c.SubjectKeyId))
		}
	}
}

// nameOfCA returns the name of a CA and the start of its key ID, which tells CAs of the same name apart.
func nameOfCA(name pkix.Name, key []byte) string {
	text := cmp.Or(name.String(), "a CA without a name")
	if len(key) > 0 {
		text += fmt.Sprintf(" (key %x)", key[:min(len(key), 4)])
	}
	return text
}

// paths reports webhooks with a path that their server answers with 404.
func paths(s *Snapshot) []Finding {
	var found []Finding
	for _, t := range s.Targets {
		for _, c := range s.Connections[t.Backend] {
			if a := c.Answers[t.Path]; a.Get == http.StatusNotFound && a.Post == http.StatusNotFound {
				found = append(found, find("wrong-path", t.Object(), []*Target{t}, fmt.Sprintf("%s answers 404 to a GET and a POST of %s", c.String(), cmp.Or(t.Path, "/"))))
			}
		}
	}
	return found
}
