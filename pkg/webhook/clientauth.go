// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/admitkit/admitkit/internal/reload"
)

// ClientAuth says who may call the hooks of a [Server]: by default everybody who reaches it. An
// API server sends credentials only if it is told to, in files that package install writes; it
// sends one kind to a webhook, or a client certificate and one other.
//
// Of the kinds that are set a call must satisfy one. That is what it takes to go from one kind
// to another, or to serve API servers that use different ones, without a failed call. It also
// means that the weakest kind decides: in the long run set one.
//
// A call without valid credentials is answered 401 Unauthorized, and one with a client
// certificate that is valid but not among Names 403 Forbidden, both before the body is read.
// They are failures to decide, so the failurePolicy applies: Ignore lets objects through.
// Probes need no credentials.
//
// The files are read again while the server runs. What cannot be used when the server starts
// is an error of Start; later the server goes on with what it has read before, and logs that.
// So emptying a file revokes nothing: replace what is in it.
type ClientAuth struct {
	// CAFile is a PEM file with the certificates of the CAs that sign client certificates,
	// for authentication by TLS (mTLS). To replace a CA let the file hold both for a while:
	// an API server takes five minutes to see a new certificate of its own. Connections that
	// were made by a certificate of a CA that is no longer there cannot be used either.
	CAFile string
	// Names are the client certificates that may call, by the common name of the subject or
	// by a DNS name, URI, email address or IP address for which they were made; any that a CA
	// of CAFile signed when empty. A name with :// or urn: is compared with URIs only, an IP
	// address with IP addresses only, and a name with @ not with DNS names.
	Names []string
	// TokenFile holds bearer tokens of 16 bytes or more, one per line; make them with a random
	// generator. Empty lines and lines that start with # do not count. To replace a token let the file hold both for a while: an API server takes a
	// minute to see a new token in its own file.
	TokenFile string
	// BasicFile holds user names and passwords, user:password on each line as in TokenFile. A
	// user may have several passwords.
	BasicFile string
	// ReloadInterval is how often the files are read again: every 10 s by default. Negative means
	// never.
	ReloadInterval time.Duration
}

func (c *ClientAuth) check() error {
	if c.CAFile == "" && c.TokenFile == "" && c.BasicFile == "" {
		return errors.New("Options.ClientAuth asks for nothing: set its CAFile, TokenFile or BasicFile, or let it be nil")
	}
	if len(c.Names) > 0 && c.CAFile == "" {
		return errors.New("Options.ClientAuth.Names are names of client certificates: set CAFile too")
	}
	for i, name := range c.Names {
		if strings.TrimSpace(name) != name || name == "" {
			return fmt.Errorf("Options.ClientAuth.Names[%d] is %q: leave out names that are empty, and spaces around them", i, name)
		}
	}
	return nil
}

// An authenticator decides whether a call may pass. The nil one lets every call pass.
type authenticator struct {
	files    []watched
	interval time.Duration
	kinds    []credentialKind
	asked    string   // what calls are asked for, in words
	schemes  []string // for WWW-Authenticate

	certificates *certificates // nil unless they count
	log          logr.Logger
	running      bool // from now on Report says what nobody else does
	complaints   complaints
}

// A credentialKind judges one kind of credentials. It returns nil if the call passes by it,
// errNoCredential if the call has none of the kind, and else why that is not good enough.
type credentialKind func(*http.Request) error

var errNoCredential = errors.New("no credential of this kind")

// watched is a file, and the field of ClientAuth that names it.
type watched struct {
	anyFiles
	field string
}

// anyFiles is a reload.Files of any type.
type anyFiles interface {
	Load() error
	Run(ctx context.Context, interval time.Duration)
}

// newAuthenticator reads the files. It returns every error.
func newAuthenticator(c *ClientAuth, log logr.Logger) (*authenticator, error) {
	if c == nil {
		return nil, nil
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	a := &authenticator{interval: c.ReloadInterval, log: log}
	var asked []string
	if c.CAFile != "" {
		files := newFiles(a, "CAFile", c.CAFile, parseCAs)
		a.certificates = &certificates{cas: files.Get, names: c.Names}
		a.kinds = append(a.kinds, a.certificates.judge)
		asked = append(asked, "a client certificate")
	}
	if c.TokenFile != "" {
		a.kinds = append(a.kinds, bearer(newFiles(a, "TokenFile", c.TokenFile, parseTokens)))
		asked = append(asked, "a bearer token")
		a.schemes = append(a.schemes, `Bearer realm="admission webhooks"`)
	}
	if c.BasicFile != "" {
		a.kinds = append(a.kinds, basic(newFiles(a, "BasicFile", c.BasicFile, parseBasic)))
		asked = append(asked, "a user name and password")
		a.schemes = append(a.schemes, `Basic realm="admission webhooks"`)
	}
	a.asked = strings.Join(asked, " or ")
	return a, a.load()
}

func newFiles[T any](a *authenticator, field, path string, parse func([]byte) (T, error)) *reload.Files[T] {
	files := reload.New(reload.Options[T]{
		Paths:  []string{path},
		Parse:  func(contents [][]byte) (T, error) { return parse(contents[0]) },
		Report: func(err error) { a.report(path, err) },
	})
	a.files = append(a.files, watched{files, field})
	return files
}

func (a *authenticator) load() error {
	var errs []error
	for _, f := range a.files {
		if err := f.Load(); err != nil {
			errs = append(errs, fmt.Errorf("Options.ClientAuth.%s: %w", f.field, err))
		}
	}
	return errors.Join(errs...)
}

func (a *authenticator) report(path string, err error) {
	switch {
	case !a.running:
	case err != nil:
		a.log.Error(err, "client authentication goes on with what was in the file before; correct the file", "file", path)
	default:
		a.log.Info("client authentication goes by what is in the file now", "file", path)
	}
}

// start has the files read again and again until the function it returns is called, which is
// after the calls in flight at a stop of ctx. It may be called once.
func (a *authenticator) start(ctx context.Context) (stop func()) {
	if a == nil {
		return func() {}
	}
	a.running = true
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var all sync.WaitGroup
	for _, f := range a.files {
		all.Go(func() { f.Run(ctx, a.interval) })
	}
	return func() { cancel(); all.Wait() }
}

// A refusal says why a call may not pass.
type refusal struct {
	*failure
	kind refusalKind
}

func (r *refusal) Unwrap() error { return r.failure }

type refusalKind int

const (
	missing refusalKind = iota // the call has no credentials
	invalid                    // it has some, but they are not known
	unnamed                    // they are, but not among those that may call
)

// admit returns nil if the call may pass.
func (a *authenticator) admit(r *http.Request) *refusal {
	if a == nil {
		return nil
	}
	kind, why := missing, []string{}
	for _, judge := range a.kinds {
		err := judge(r)
		if err == nil {
			return nil
		}
		if errors.Is(err, errNoCredential) {
			continue
		}
		if !slices.Contains(why, err.Error()) {
			why = append(why, err.Error())
		}
		var name *nameError
		if errors.As(err, &name) {
			kind = unnamed
		}
		kind = max(kind, invalid)
	}
	code := http.StatusUnauthorized
	switch kind {
	case unnamed:
		code = http.StatusForbidden
	case missing:
		why = append(why, "the webhook server asks for "+a.asked+", and the call has none")
	case invalid:
	}
	return &refusal{newFailure(code, strings.Join(why, "; ")), kind}
}

// refuse answers a call that may not pass.
func (a *authenticator) refuse(w http.ResponseWriter, r *http.Request, why *refusal) {
	a.complaints.note(a.log, r, why)
	if why.status.Code == http.StatusUnauthorized {
		for _, scheme := range a.schemes {
			w.Header().Add("WWW-Authenticate", scheme)
		}
	}
	statusToStranger(w, r, failureStatus(why))
}

// complaints log refused calls. Anybody who reaches the port can cause them, so at a normal
// level there is one of each kind in a minute.
type complaints struct {
	mu   sync.Mutex
	last map[refusalKind]complaint
}

type complaint struct {
	at     time.Time
	others int // since then
}

const complaintInterval = time.Minute

func (c *complaints) note(log logr.Logger, r *http.Request, why *refusal) {
	values := []any{"code", why.status.Code, "path", clip(r.URL.Path), "remote", r.RemoteAddr}
	others, due := c.due(why.kind, time.Now())
	if !due {
		log.V(1).Info("refused a call", append(values, "reason", why.Error())...)
		return
	}
	log.Error(why, "refused a call; more of the kind within a minute are logged at V(1)", append(values, "moreBefore", others)...)
}

// due tells whether a complaint is to be heard, and how many were not since the last.
func (c *complaints) due(kind refusalKind, now time.Time) (others int, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	last, heard := c.last[kind]
	if heard && now.Sub(last.at) < complaintInterval {
		last.others++
		c.last[kind] = last
		return 0, false
	}
	if c.last == nil {
		c.last = map[refusalKind]complaint{}
	}
	c.last[kind] = complaint{at: now}
	return last.others, true
}
