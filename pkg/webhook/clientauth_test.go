// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"context"
	"encoding/base64"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"

	"github.com/admitkit/admitkit/pkg/webhook"
)

// with returns a copy of the endpoint whose client sends these Authorization headers. It leaves out empty headers.
func (e *endpoint) with(authorization ...string) *endpoint {
	other := *e
	other.client = &http.Client{Transport: header{e.client.Transport, authorization}}
	return &other
}

type header struct {
	http.RoundTripper
	authorization []string
}

func (h header) RoundTrip(r *http.Request) (*http.Response, error) {
	for _, value := range h.authorization {
		if value != "" {
			r.Header.Add("Authorization", value)
		}
	}
	return h.RoundTripper.RoundTrip(r)
}

func pair(text string) string { return "Basic " + base64.StdEncoding.EncodeToString([]byte(text)) }

func TestTokensAndPasswords(t *testing.T) {
	tokens := &webhook.ClientAuth{TokenFile: file(t, "# of 2026\nabc.DEF-1_2~+/==\r\n\n  second-of-2026xyz\t\n#third-of-2026-xyz\nlast-of-2026-xyz")}
	pairs := &webhook.ClientAuth{BasicFile: file(t, "\ufeffada:l0ve:lace\n# a comment\nada:2\ngräce:hop per \r\n")}
	both := &webhook.ClientAuth{TokenFile: tokens.TokenFile, BasicFile: pairs.BasicFile}
	const (
		noToken   = "the webhook server does not know the bearer token"
		noPair    = "the webhook server does not know this user name and password"
		tokenOnly = "the webhook server asks for a bearer token, and the call has none"
	)
	for _, in := range []struct {
		reason string
		auth   *webhook.ClientAuth
		sent   string
		want   string // empty: passes
	}{
		{reason: "first token", auth: tokens, sent: "Bearer abc.DEF-1_2~+/=="},
		{reason: "second token", auth: tokens, sent: "bearer  second-of-2026xyz"},
		{reason: "last token", auth: tokens, sent: "BEARER last-of-2026-xyz"},
		{reason: "a wrong token", auth: tokens, sent: "Bearer third-of-2026-xyz", want: noToken},
		{reason: "part of a token", auth: tokens, sent: "Bearer last-of-2026-xy", want: noToken},
		{reason: "more than a token", auth: tokens, sent: "Bearer last-of-2026-xyz1", want: noToken},
		{reason: "a comment", auth: tokens, sent: "Bearer #third-of-2026-xyz", want: noToken},
		{reason: "several tokens", auth: tokens, sent: "Bearer second-of-2026xyz\tlast-of-2026-xyz", want: noToken},
		{reason: "an empty token", auth: tokens, sent: "Bearer ", want: noToken},
		{reason: "no token", auth: tokens, sent: "Bearer", want: noToken},
		{reason: "an endless token", auth: tokens, sent: "Bearer " + strings.Repeat("x", 50_000), want: noToken},
		{reason: "nothing", auth: tokens, want: tokenOnly},
		{reason: "a password for a token", auth: tokens, sent: pair("ada:2"), want: tokenOnly},
		{reason: "a token without its scheme", auth: tokens, sent: "last-of-2026-xyz", want: tokenOnly},
		{reason: "a password with a colon", auth: pairs, sent: pair("ada:l0ve:lace")},
		{reason: "another password of the user", auth: pairs, sent: pair("ada:2")},
		{reason: "a password with a space, and a name that is not ASCII", auth: pairs, sent: pair("gräce:hop per")},
		{reason: "another user's password", auth: pairs, sent: pair("gräce:2"), want: noPair},
		{reason: "another cut between name and password", auth: pairs, sent: pair("ada:l0ve"), want: noPair},
		{reason: "no password", auth: pairs, sent: pair("ada:"), want: noPair},
		{reason: "no colon", auth: pairs, sent: pair("ada"), want: noPair},
		{reason: "not base64", auth: pairs, sent: "Basic ada:2", want: noPair},
		{reason: "no credentials", auth: pairs, want: "the webhook server asks for a user name and password, and the call has none"},
		{reason: "either: the token", auth: both, sent: "Bearer last-of-2026-xyz"},
		{reason: "either: the password", auth: both, sent: pair("ada:2")},
		{reason: "either, but a wrong token", auth: both, sent: "Bearer x", want: noToken},
		{reason: "either, but no credentials", auth: both, want: "the webhook server asks for a bearer token or a user name and password, and the call has none"},
	} {
		row(t, in.reason, func(t *testing.T) {
			hook := mutating(label)
			e := serve(t, webhook.Options{ClientAuth: in.auth}, hook).with(in.sent)
			a := e.ask(t, hook, call{})
			if in.want == "" {
				a.allowed(t, call{}, true)
				return
			}
			if status := a.failed(t); a.code != 401 || status.Reason != "Unauthorized" || status.Message != in.want {
				t.Errorf("got %d %s %q, want %q", a.code, status.Reason, status.Message, in.want)
			}
			var schemes []string
			if in.auth.TokenFile != "" {
				schemes = append(schemes, `Bearer realm="admission webhooks"`)
			}
			if in.auth.BasicFile != "" {
				schemes = append(schemes, `Basic realm="admission webhooks"`)
			}
			if got := a.header["Www-Authenticate"]; strings.Join(got, "|") != strings.Join(schemes, "|") || len(a.header["Retry-After"]) > 0 {
				t.Errorf("got %v, want %q to be asked for, and no retry", a.header, schemes)
			}
		})
	}
}

// A call with several Authorization headers must be rejected, because a proxy in front of the server may have checked a
// different one. With a valid client certificate, the headers do not matter.
func TestSeveralAuthorizations(t *testing.T) {
	const several = "the call has several Authorization headers; the webhook server accepts only one"
	tokens, pairs := file(t, "first-of-2026-xyz\nsecond-of-2026xyz"), file(t, "ada:2")
	ca, hook := newSigner(t, "clients"), mutating(label)
	both := serve(t, webhook.Options{ClientAuth: &webhook.ClientAuth{TokenFile: tokens, BasicFile: pairs}}, hook)
	mixed := serve(t, webhook.Options{ClientAuth: &webhook.ClientAuth{TokenFile: tokens, CAFile: file(t, ca.pem())}}, hook)
	for _, in := range []struct {
		reason string
		client *endpoint
		code   int
	}{
		{"one", both.with("Bearer first-of-2026-xyz"), 200},
		{"a good one and a wrong one", both.with("Bearer first-of-2026-xyz", "Bearer x"), 401},
		{"a wrong one and a good one", both.with("Bearer x", "Bearer first-of-2026-xyz"), 401},
		{"two good ones", both.with("Bearer first-of-2026-xyz", "Bearer second-of-2026xyz"), 401},
		{"the same twice", both.with("Bearer first-of-2026-xyz", "Bearer first-of-2026-xyz"), 401},
		{"a token and a password", both.with("Bearer first-of-2026-xyz", pair("ada:2")), 401},
		{"a password and something else", both.with(pair("ada:2"), "Digest x"), 401},
		{"beside a certificate they do not matter", mixed.as(ca.issue(t, subject("kube-apiserver"))).with("Bearer x", "Bearer y"), 200},
	} {
		row(t, in.reason, func(t *testing.T) {
			a := in.client.ask(t, hook, call{})
			if a.code != in.code || in.code != 200 && a.failed(t).Message != several {
				t.Errorf("got %d %s, want %d", a.code, a.body, in.code)
			}
		})
	}
}

func TestOneKindOfCredentialsIsEnough(t *testing.T) {
	ca := newSigner(t, "clients")
	auth := &webhook.ClientAuth{CAFile: file(t, ca.pem()), Names: []string{"kube-apiserver"}, TokenFile: file(t, "secret-0123456789")}
	hook := mutating(label)
	e := serve(t, webhook.Options{ClientAuth: auth}, hook)
	good, other, wrong := ca.issue(t, subject("kube-apiserver")), ca.issue(t, subject("other")), newSigner(t, "x").issue(t, subject("kube-apiserver"))
	for _, in := range []struct {
		reason string
		client *endpoint
		code   int
		want   string
	}{
		{"both", e.as(good).with("Bearer secret-0123456789"), 200, ""},
		{"a certificate", e.as(good), 200, ""},
		{"a certificate, and a wrong token", e.as(good).with("Bearer x"), 200, ""},
		{"a token", e.with("Bearer secret-0123456789"), 200, ""},
		{"a token, and a wrong certificate", e.as(wrong).with("Bearer secret-0123456789"), 200, ""},
		{"neither", e, 401, "the webhook server asks for a client certificate or a bearer token, and the call has none"},
		{"both wrong", e.as(wrong).with("Bearer x"), 401, "authority; the webhook server does not know the bearer token"},
		{"a certificate that is not named, and a wrong token", e.as(other).with("Bearer x"), 403, `it is for subject "CN=other"; the webhook`},
	} {
		row(t, in.reason, func(t *testing.T) {
			a := in.client.ask(t, hook, call{})
			if a.code != in.code || in.code != 200 && !strings.Contains(a.failed(t).Message, in.want) {
				t.Errorf("got %d %s, want %d %q", a.code, a.body, in.code, in.want)
			}
		})
	}
}

// An unauthenticated client must get 401 at every path, so that it does not learn which paths exist. The server must
// send this answer before it reads the body. Probes need no credentials.
func TestUnauthenticatedClients(t *testing.T) {
	hook := mutating(label)
	e := serve(t, webhook.Options{ClientAuth: &webhook.ClientAuth{TokenFile: file(t, "secret-0123456789")}}, hook)
	for _, path := range []string{hook.Path(), "/", "/mutate/other", "/healthz/", "/readyz/../mutate/pods.example.com"} {
		if a := e.post(t, path, call{}.body()); a.failed(t).Code != 401 {
			t.Errorf("%s: got %d", path, a.code)
		}
	}
	if a := e.with("Bearer secret-0123456789").post(t, "/mutate/other", nil); a.failed(t).Code != 404 {
		t.Errorf("got %d", a.code)
	}
	for _, path := range []string{"/healthz", "/readyz"} {
		if a := e.post(t, path, nil); a.code != 200 {
			t.Errorf("%s: got %d %s", path, a.code, a.body)
		}
	}
	sending, body := io.Pipe()
	defer func() { _ = body.Close() }()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, e.url+hook.Path(), sending)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := e.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if _ = resp.Body.Close(); resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("got %d for a body that was not sent", resp.StatusCode)
	}
}

func TestStartReportsClientAuthErrors(t *testing.T) {
	ca := newSigner(t, "clients")
	stopped, cancel := context.WithCancel(t.Context())
	cancel() // a server that starts by mistake stops at once
	dir := t.TempDir()
	missing := filepath.Join(dir, "no-file")
	for _, in := range []struct {
		reason string
		auth   webhook.ClientAuth
		want   string
	}{
		{reason: "no credentials configured", want: "Options.ClientAuth has no credentials: set its CAFile, TokenFile or BasicFile, or leave ClientAuth nil"},
		{reason: "names without CAFile", auth: webhook.ClientAuth{TokenFile: missing, Names: []string{"a"}}, want: "Options.ClientAuth.Names are names of client certificates: set CAFile too"},
		{reason: "an empty name", auth: webhook.ClientAuth{CAFile: missing, Names: []string{"a", ""}}, want: `Options.ClientAuth.Names[1] is "": remove empty names`},
		{reason: "a name with a space", auth: webhook.ClientAuth{CAFile: missing, Names: []string{"a "}}, want: `Options.ClientAuth.Names[0] is "a ": remove empty names`},
		{reason: "all missing", auth: webhook.ClientAuth{CAFile: missing + "1", TokenFile: missing + "2", BasicFile: missing + "3"},
			want: missing + "1: no such file or directory\nOptions.ClientAuth.TokenFile: stat " + missing + "2: no such file or directory\nOptions.ClientAuth.BasicFile: stat " + missing + "3: no such file"},
		{reason: "a folder", auth: webhook.ClientAuth{CAFile: dir}, want: dir + " is not a regular file"},
		{reason: "no certificate", auth: webhook.ClientAuth{CAFile: file(t, "none")}, want: "/file: the file holds no certificate: add the CAs that sign client certificates, in PEM"},
		{reason: "an empty file", auth: webhook.ClientAuth{CAFile: file(t, "")}, want: "the file holds no certificate"},
		{reason: "a key", auth: webhook.ClientAuth{CAFile: file(t, ca.pem()+"-----BEGIN EC PRIVATE KEY-----\naaaa\n-----END EC PRIVATE KEY-----\n")},
			want: `a PEM block is of type "EC PRIVATE KEY": the file must hold CA certificates only`},
		{reason: "half a certificate", auth: webhook.ClientAuth{CAFile: file(t, ca.pem()+ca.pem()[:200])}, want: "only 1 of 2 PEM blocks can be read: the file may be half written"},
		{reason: "not a certificate", auth: webhook.ClientAuth{CAFile: file(t, ca.pem()+pemOf([]byte("secret")))}, want: "certificate 2 cannot be parsed: x509: malformed certificate"},
		{reason: "no token", auth: webhook.ClientAuth{TokenFile: file(t, "# none\n\n")}, want: "/file: the file holds no bearer token: write one on a line of its own"},
		{reason: "a list of the API server's", auth: webhook.ClientAuth{TokenFile: file(t, "good-0123456789-a\nsecret,user,1\n")}, want: "line 2 is not a bearer token: want letters"},
		{reason: "a header", auth: webhook.ClientAuth{TokenFile: file(t, "Bearer secret")}, want: "line 1 is not a bearer token"},
		{reason: "a binary file", auth: webhook.ClientAuth{TokenFile: file(t, "secret\x00")}, want: "line 1 is not a bearer token"},
		{reason: "a token that can be guessed", auth: webhook.ClientAuth{TokenFile: file(t, "secret-01234567\n")}, want: "line 1 is shorter than 16 bytes: make a random one"},
		{reason: "a token too long", auth: webhook.ClientAuth{TokenFile: file(t, strings.Repeat("x", 8193))}, want: "line 1 is longer than 8192 bytes"},
		{reason: "too large", auth: webhook.ClientAuth{TokenFile: file(t, strings.Repeat("secret\n", 200_000))}, want: "/file is larger than 1048576 bytes"},
		{reason: "no password", auth: webhook.ClientAuth{BasicFile: file(t, "#\n")}, want: "/file: the file holds no user name with a password"},
		{reason: "an empty password", auth: webhook.ClientAuth{BasicFile: file(t, "secret:")}, want: "line 1 is not a user name with a password: one of them is empty"},
		{reason: "an empty user", auth: webhook.ClientAuth{BasicFile: file(t, ":secret")}, want: "line 1 is not a user name with a password: one of them is empty"},
		{reason: "a token for a password", auth: webhook.ClientAuth{BasicFile: file(t, "\nsecret")}, want: "line 2 is not of the form user:password"},
		{reason: "a hash", auth: webhook.ClientAuth{BasicFile: file(t, "ada:$2y$05$secret")}, want: "line 1 contains a hash, as htpasswd writes it: want the password itself"},
		{reason: "a control character", auth: webhook.ClientAuth{BasicFile: file(t, "ada:sec\x01ret")}, want: "line 1 has control characters or is not UTF-8"},
		{reason: "not UTF-8", auth: webhook.ClientAuth{BasicFile: file(t, "ada:sec\xffret")}, want: "line 1 has control characters or is not UTF-8"},
	} {
		row(t, in.reason, func(t *testing.T) {
			_, config := certificate(t)
			server := webhook.NewServer(webhook.Options{TLSConfig: config, Addr: "127.0.0.1:0", ClientAuth: &in.auth}, mutating(label))
			err := server.Start(stopped)
			if err == nil || !strings.Contains(err.Error(), in.want) || !strings.HasPrefix(err.Error(), "cannot start the webhook server: ") {
				t.Errorf("\n got %v\nwant %s", err, in.want)
			}
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("the error has a secret in it: %v", err)
			}
		})
	}
}

// lines collects log lines.
type lines struct {
	mu  sync.Mutex
	all []string
}

func (l *lines) logger(verbosity int) logr.Logger {
	return funcr.New(func(_, line string) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.all = append(l.all, line)
	}, funcr.Options{Verbosity: verbosity})
}

// take returns the log lines since the last call.
func (l *lines) take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := strings.Join(l.all, "\n")
	l.all = nil
	return all
}

func TestClientAuthIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log lines
		tokens, hook := file(t, "good-secret-0123456789"), mutating(label)
		e := serveInMemory(t, webhook.Options{
			Logger: log.logger(0), ClientAuth: &webhook.ClientAuth{TokenFile: tokens, ReloadInterval: time.Second},
		}, hook)
		expect := func(why, want string) {
			t.Helper()
			got := log.take()
			if (got == "") != (want == "") || !strings.Contains(got, want) || strings.Contains(got, "secret") || strings.Contains(got, "\n") {
				t.Errorf("%s: got %q, want %q", why, got, want)
			}
		}
		synctest.Wait()
		log.take() // the lines about the start
		ask := func(authorization string) { t.Helper(); e.with(authorization).ask(t, hook, call{}) }
		ask("Bearer good-secret-0123456789")
		expect("a good call", "")
		ask("Bearer bad-secret-0123456789")
		expect("a bad call", `"msg"="refused a call; further errors of this kind within a minute are logged at V(1)" "error"="the webhook server does not know the bearer token" "code"=401 "path"="/mutate/pods.example.com" "remote"="`)
		for range 5 {
			ask("Bearer bad-secret-0123456789")
		}
		expect("more of them", "")
		ask("")
		expect("a call without credentials", "and the call has none")
		<-time.After(time.Minute)
		ask("Bearer bad-secret-0123456789")
		expect("a minute later", `"moreBefore"=5`)

		later := func() { <-time.After(1400 * time.Millisecond); synctest.Wait() } // one reload interval and the pause after a change
		rewrite(t, tokens, "next-secret-0123456789")
		later()
		expect("a new token", `"msg"="client authentication uses the new content of a file" "file"="`+tokens+`"`)
		rewrite(t, tokens, "two secrets")
		later()
		later()
		expect("a broken file", `"msg"="client authentication keeps the last valid content of a file; correct the file" "error"="`+tokens+`: line 1 is not a bearer token`)
		if a := e.with("Bearer next-secret-0123456789").ask(t, hook, call{}); a.code != 200 {
			t.Errorf("got %d %s", a.code, a.body)
		}
		if a := e.post(t, "/readyz", nil); a.code != 200 {
			t.Errorf("not ready: %s", a.body)
		}
		rewrite(t, tokens, "next-secret-0123456789")
		later()
		expect("in order again", "uses the new content of a file")
	})
}
