// SPDX-License-Identifier: Apache-2.0

// Package clientauth decides which clients may call the hooks of a server.
package clientauth

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
	"github.com/admitkit/admitkit/pkg/webhook/internal/ratelog"
	"github.com/admitkit/admitkit/pkg/webhook/internal/reply"
)

// A Config has the fields of webhook.ClientAuth, which documents them.
type Config struct {
	CAFile         string
	Names          []string
	TokenFile      string
	BasicFile      string
	ReloadInterval time.Duration
}

func (c *Config) check() error {
	if c.CAFile == "" && c.TokenFile == "" && c.BasicFile == "" {
		return errors.New("Options.ClientAuth has no credentials: set its CAFile, TokenFile or BasicFile, or leave ClientAuth nil")
	}
	if len(c.Names) > 0 && c.CAFile == "" {
		return errors.New("Options.ClientAuth.Names are names of client certificates: set CAFile too")
	}
	for i, name := range c.Names {
		if strings.TrimSpace(name) != name || name == "" {
			return fmt.Errorf("Options.ClientAuth.Names[%d] is %q: remove empty names and the spaces around names", i, name)
		}
	}
	return nil
}

// An Authenticator decides whether a call may pass. A nil Authenticator lets every call pass.
type Authenticator struct {
	files    []watchedFile
	interval time.Duration
	checks   []check
	wanted   string   // the configured kinds of credentials, in words
	schemes  []string // for WWW-Authenticate

	certificates *certificates // nil without CAFile
	log          logr.Logger
	running      bool // set by Start; until then report logs nothing
	refused      [numReasons]ratelog.Logger
}

// A check checks one kind of credentials. It returns nil if the call may pass, errNoCredential if
// the call has no credentials of that kind, and otherwise an error that says why they are not
// valid.
type check func(*http.Request) error

var errNoCredential = errors.New("no credential of this kind")

// A watchedFile is a file that is read again at intervals.
type watchedFile struct {
	reloader
	field string // of webhook.ClientAuth
}

// A reloader is a *reload.Files with any type argument.
type reloader interface {
	Load() error
	Run(ctx context.Context, interval time.Duration)
}

// New reads the files of c and returns every error in them. With a nil Config it returns nil.
func New(c *Config, log logr.Logger) (*Authenticator, error) {
	if c == nil {
		return nil, nil
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	a := &Authenticator{interval: c.ReloadInterval, log: log}
	var wanted []string
	if c.CAFile != "" {
		files := newFiles(a, "CAFile", c.CAFile, parseCAs)
		a.certificates = &certificates{cas: files.Get, names: c.Names}
		a.checks = append(a.checks, a.certificates.check)
		wanted = append(wanted, "a client certificate")
	}
	if c.TokenFile != "" {
		a.checks = append(a.checks, bearer(newFiles(a, "TokenFile", c.TokenFile, parseTokens)))
		wanted = append(wanted, "a bearer token")
		a.schemes = append(a.schemes, `Bearer realm="admission webhooks"`)
	}
	if c.BasicFile != "" {
		a.checks = append(a.checks, basic(newFiles(a, "BasicFile", c.BasicFile, parseBasic)))
		wanted = append(wanted, "a user name and password")
		a.schemes = append(a.schemes, `Basic realm="admission webhooks"`)
	}
	a.wanted = strings.Join(wanted, " or ")
	return a, a.load()
}

func newFiles[T any](a *Authenticator, field, path string, parse func([]byte) (T, error)) *reload.Files[T] {
	files := reload.New(reload.Options[T]{
		Paths:  []string{path},
		Parse:  func(contents [][]byte) (T, error) { return parse(contents[0]) },
		Report: func(err error) { a.report(path, err) },
	})
	a.files = append(a.files, watchedFile{files, field})
	return files
}

func (a *Authenticator) load() error {
	var errs []error
	for _, f := range a.files {
		if err := f.Load(); err != nil {
			errs = append(errs, fmt.Errorf("Options.ClientAuth.%s: %w", f.field, err))
		}
	}
	return errors.Join(errs...)
}

func (a *Authenticator) report(path string, err error) {
	switch {
	case !a.running:
	case err != nil:
		a.log.Error(err, "client authentication keeps the last valid content of a file; correct the file", "file", path)
	default:
		a.log.Info("client authentication uses the new content of a file", "file", path)
	}
}

// Start reads the files again at intervals until stop is called. The end of ctx does not stop it, since
// calls in flight need the files. Start may be called once.
func (a *Authenticator) Start(ctx context.Context) (stop func()) {
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

// A Refusal is the failure of a call without valid credentials.
type Refusal struct {
	*reply.Failure
	reason reason
}

func (r *Refusal) Unwrap() error { return r.Failure }

// A reason says why a call was refused. If several credentials are refused, the greatest reason
// is reported.
type reason int

const (
	missing    reason = iota // the call has no credentials
	invalid                  // the credentials are not valid
	notAllowed               // the client certificate is valid, but has none of the Names
	numReasons
)

// Check returns nil if the call may pass. Otherwise it returns the Refusal for Refuse.
func (a *Authenticator) Check(r *http.Request) *Refusal {
	if a == nil {
		return nil
	}
	reason, texts := missing, []string{}
	for _, check := range a.checks {
		err := check(r)
		if err == nil {
			return nil
		}
		if errors.Is(err, errNoCredential) {
			continue
		}
		if !slices.Contains(texts, err.Error()) {
			texts = append(texts, err.Error())
		}
		var name *nameError
		if errors.As(err, &name) {
			reason = notAllowed
		}
		reason = max(reason, invalid)
	}
	code := http.StatusUnauthorized
	switch reason {
	case notAllowed:
		code = http.StatusForbidden
	case missing:
		texts = append(texts, "the webhook server asks for "+a.wanted+", and the call has none")
	}
	return &Refusal{reply.New(code, strings.Join(texts, "; ")), reason}
}

// Refuse logs a refusal and answers the call. Any client can provoke refusals, so each reason is
// logged at most once per minute.
func (a *Authenticator) Refuse(w http.ResponseWriter, r *http.Request, refusal *Refusal) {
	code := refusal.Status.Code
	a.refused[refusal.reason].Error(a.log, refusal, "refused a call", "code", code, "path", reply.Clip(r.URL.Path), "remote", r.RemoteAddr)
	if code == http.StatusUnauthorized {
		for _, scheme := range a.schemes {
			w.Header().Add("WWW-Authenticate", scheme)
		}
	}
	reply.WriteUnreadStatus(w, r, reply.StatusOf(refusal))
}
