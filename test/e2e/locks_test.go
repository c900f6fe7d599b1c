// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/admitkit/admitkit/internal/devcert"
	"github.com/admitkit/admitkit/pkg/apiserverauth"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// A lock is a webhook server that requires one kind of credentials. The API server chooses credentials by
// the Service or URL that it calls, so each caller has its own address of the server.
type lock struct {
	kind     string
	listener countingListener
	auth     webhook.ClientAuth
	file     string             // file with the accepted credentials, which specs rewrite
	content  map[string]string  // contents of file that accept the caller "right", "next", or "both"
	callers  map[string]*caller // by name
}

// A caller is an address of a lock, with the credentials that the API server sends there.
type caller struct {
	show    apiserverauth.User // address and credentials
	byURL   bool               // has a URL, not a Service
	refusal string             // error that the user reads, empty if the credentials are accepted
	client  admissionregistrationv1.WebhookClientConfig
}

// locks has a lock for each kind of credentials. prepareLocks completes them.
var locks = map[string]*lock{"certificate": {}, "token": {}, "password": {}}

// prepareLocks writes the credentials for the API server and returns the path of its admission
// configuration. It must be called before the API server starts.
func prepareLocks(dir string) (admissionConfiguration string) {
	GinkgoHelper()
	var users []apiserverauth.User
	for kind, l := range locks {
		l.kind = kind
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		Expect(err).NotTo(HaveOccurred())
		l.listener = countingListener{listener, &atomic.Int32{}}
		DeferCleanup(func() { _ = listener.Close() }) // in case no spec started the server
		path := func(name, content string) string { return written(dir, kind+"-"+name, []byte(content)) }
		switch kind {
		case "certificate":
			l.requireCertificates(path)
		case "token":
			l.requireTokens(path)
		case "password":
			l.requirePasswords(path)
		}
		for name, c := range l.callers {
			users = append(users, l.setAddress(name, c)...)
		}
	}
	kubeconfigFile := filepath.Join(dir, "webhooks.kubeconfig")
	configuration, kubeconfig, err := apiserverauth.Files(apiserverauth.Options{KubeconfigFile: kubeconfigFile, Users: users})
	Expect(err).NotTo(HaveOccurred())
	written(dir, "webhooks.kubeconfig", kubeconfig)
	return written(dir, "admission.yaml", configuration)
}

// replace replaces a file atomically, as the kubelet does in a mounted Secret.
func replace(path, content string) {
	GinkgoHelper()
	Expect(os.Rename(written(filepath.Dir(path), filepath.Base(path)+".tmp", []byte(content)), path)).To(Succeed())
}

// written writes a file and returns its path.
func written(dir, name string, content []byte) (path string) {
	GinkgoHelper()
	path = filepath.Join(dir, name)
	Expect(os.WriteFile(path, content, 0o600)).To(Succeed())
	return path
}

// setAddress sets the address of a caller. It returns the credentials for that address, or none.
func (l *lock) setAddress(name string, c *caller) []apiserverauth.User {
	if c.byURL {
		c.show.URL = "https://" + l.listener.Addr().String()
		c.client.URL = &c.show.URL
	} else {
		port := int32(l.listener.Addr().(*net.TCPAddr).Port)
		c.show.Service = &admissionregistrationv1.ServiceReference{Namespace: "lock-" + l.kind, Name: name, Port: &port}
		c.client.Service = c.show.Service
	}
	if c.show.CertFile+c.show.TokenFile+c.show.Token+c.show.Username == "" {
		return nil
	}
	return []apiserverauth.User{c.show}
}

const missingText = "the webhook server asks for %s, and the call has none"

// requireCertificates sets the callers of a server that requires client certificates.
func (l *lock) requireCertificates(path func(name, content string) string) {
	GinkgoHelper()
	first, err := devcert.NewCA()
	Expect(err).NotTo(HaveOccurred())
	second, err := devcert.NewCA()
	Expect(err).NotTo(HaveOccurred())
	issued := func(ca *devcert.CA, commonName string) apiserverauth.User {
		cert, key, err := ca.Client(commonName)
		Expect(err).NotTo(HaveOccurred())
		name := fmt.Sprintf("%s-%p", commonName, ca)
		return apiserverauth.User{CertFile: path(name+".crt", string(cert)), KeyFile: path(name+".key", string(key))}
	}
	l.content = map[string]string{"right": string(first.Bundle), "next": string(second.Bundle), "both": string(first.Bundle) + string(second.Bundle)}
	l.file = path("ca.crt", l.content["right"])
	l.auth = webhook.ClientAuth{CAFile: l.file, Names: []string{"kube-apiserver"}}
	l.callers = map[string]*caller{
		"right":   {show: issued(first, "kube-apiserver")},
		"by-url":  {show: issued(first, "kube-apiserver"), byURL: true},
		"next":    {show: issued(second, "kube-apiserver"), refusal: "the client certificate is not valid: x509: certificate signed by unknown authority"},
		"other":   {show: issued(first, "somebody"), refusal: `the client certificate may not call this webhook server: it is for subject "CN=somebody"`},
		"token":   {show: apiserverauth.User{Token: "t0ken-0-of-2026-xyz"}, refusal: fmt.Sprintf(missingText, "a client certificate")},
		"nothing": {refusal: fmt.Sprintf(missingText, "a client certificate")},
	}
}

// requireTokens sets the callers of a server that requires bearer tokens.
func (l *lock) requireTokens(path func(name, content string) string) {
	const unknown = "the webhook server does not know the bearer token"
	l.content = map[string]string{"right": "# one\nt0ken-1-of-2026-xyz\n", "next": "t0ken-2-of-2026-xyz\n", "both": "t0ken-2-of-2026-xyz\nt0ken-1-of-2026-xyz\n"}
	l.file = path("tokens", l.content["right"])
	l.auth = webhook.ClientAuth{TokenFile: l.file}
	l.callers = map[string]*caller{
		"right":    {show: apiserverauth.User{TokenFile: path("token", "t0ken-1-of-2026-xyz\n")}},
		"by-url":   {show: apiserverauth.User{Token: "t0ken-1-of-2026-xyz"}, byURL: true},
		"next":     {show: apiserverauth.User{TokenFile: path("next-token", "t0ken-2-of-2026-xyz")}, refusal: unknown},
		"password": {show: apiserverauth.User{Username: "api", Password: "t0ken-1-of-2026-xyz"}, refusal: fmt.Sprintf(missingText, "a bearer token")},
		"nothing":  {refusal: fmt.Sprintf(missingText, "a bearer token")},
	}
}

// requirePasswords sets the callers of a server that requires a user name and password.
func (l *lock) requirePasswords(path func(name, content string) string) {
	const unknown = "the webhook server does not know this user name and password"
	l.content = map[string]string{"right": "api:1: 2\n", "next": "api:2\n", "both": "api:2\n\napi:1: 2\n"}
	l.file = path("passwords", l.content["right"])
	l.auth = webhook.ClientAuth{BasicFile: l.file}
	l.callers = map[string]*caller{
		"right":   {show: apiserverauth.User{Username: "api", Password: "1: 2"}},
		"by-url":  {show: apiserverauth.User{Username: "api", Password: "1: 2"}, byURL: true},
		"next":    {show: apiserverauth.User{Username: "api", Password: "2"}, refusal: unknown},
		"other":   {show: apiserverauth.User{Username: "ipa", Password: "1: 2"}, refusal: unknown},
		"token":   {show: apiserverauth.User{Token: "t0ken-0-of-2026-xyz"}, refusal: fmt.Sprintf(missingText, "a user name and password")},
		"nothing": {refusal: fmt.Sprintf(missingText, "a user name and password")},
	}
}

// countingListener counts the accepted connections.
type countingListener struct {
	net.Listener
	accepted *atomic.Int32
}

func (l countingListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err == nil {
		l.accepted.Add(1)
	}
	return conn, err
}
