// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"

	"github.com/admitkit/admitkit/internal/reload"
)

// FilesOptions configure [Files]. The zero value works.
type FilesOptions struct {
	// CAFile is the path of a PEM file with the CAs that clients trust. In a Secret of cert-manager this is ca.crt,
	// which the cainjector copies into the caBundles. Bundle returns these CAs. The source is not ready while they do
	// not trust the certificate. An untrusted certificate does not replace a trusted one. Empty means that trust is not
	// checked.
	CAFile string
	// Interval is the time between two reads of the files. Zero or negative means 10 s.
	Interval time.Duration
	// Logger logs new certificates, and each problem of the files once. The zero value means the
	// logger in the context of Start, or else slog's default.
	Logger logr.Logger
}

// Files returns a source that reads a certificate and its key from two PEM files, such as tls.crt
// and tls.key in a mounted Secret of cert-manager. In certFile, the certificates of intermediate
// CAs may follow.
//
// The source reads the files at every interval and compares their content. It keeps the certificate
// being served if the new files cannot be read, do not match (for example because only one was
// written yet), or hold an invalid certificate while the old one is valid. Status and the log report
// this. The source uses changed files only once they stay the same for a moment, because a CA file
// that is only half written may parse.
//
// Start returns an error if the files hold no pair of a certificate and its key. A pair that has expired, or
// is not valid yet, is served, but the source is not ready. Users then see why the API server does not
// accept the certificate, which says more than a failed handshake.
func Files(certFile, keyFile string, o FilesOptions) Source {
	f := &files{certFile: certFile, o: o, log: o.Logger}
	f.pair = reload.New(reload.Options[*tls.Certificate]{
		Paths: []string{certFile, keyFile},
		Parse: func(contents [][]byte) (*tls.Certificate, error) {
			return parsePair(certFile, contents[0], keyFile, contents[1])
		},
	})
	if o.CAFile != "" {
		f.ca = reload.New(reload.Options[*roots]{
			Paths: []string{o.CAFile},
			Parse: func(contents [][]byte) (*roots, error) { return newRoots(contents[0]) },
		})
	}
	return f
}

type files struct {
	certFile string
	o        FilesOptions
	log      logr.Logger // set before Start reads the files
	pair     *reload.Files[*tls.Certificate]
	ca       *reload.Files[*roots] // nil without a CAFile
	start    atomic.Bool
	served   atomic.Pointer[tls.Certificate]

	mu       sync.Mutex
	renewals int
	logged   string // the error that was logged last
}

// NeedLeaderElection returns false, so that a controller-runtime manager starts the source on every replica.
func (f *files) NeedLeaderElection() bool { return false }

func (f *files) Start(ctx context.Context) error {
	if f.start.Swap(true) {
		return errStartedTwice
	}
	if f.log.GetSink() == nil {
		f.log = contextLogger(ctx)
	}
	if err := f.load(); err != nil {
		return fmt.Errorf("there is no certificate to serve: %w; mount the Secret with the certificate there, or set other paths", err)
	}
	interval := f.o.Interval
	if interval <= 0 {
		interval = reload.DefaultInterval
	}
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		f.choose()
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			f.reload(ctx)
		}
	}
}

// load reads the files. It returns an error if one of them has no valid content.
func (f *files) load() error {
	pairErr := f.pair.Load()
	if _, n := f.pair.Get(); n == 0 {
		return pairErr
	}
	if f.ca == nil {
		return nil
	}
	caErr := f.ca.Load()
	if _, n := f.ca.Get(); n == 0 {
		return fmt.Errorf("%w: leave out the CA file if there is none", caErr)
	}
	return nil
}

// reload reads the files again. Status reports what is wrong with them.
func (f *files) reload(ctx context.Context) {
	_ = f.pair.Reload(ctx)
	if f.ca != nil {
		_ = f.ca.Reload(ctx)
	}
}

// choose serves the certificate that was read last, unless the certificate being served is better: see prefers.
func (f *files) choose() {
	now := time.Now()
	candidate, _ := f.pair.Get()
	served, ca := f.served.Load(), f.roots()
	if served == nil || !sameChain(candidate, served) && ca.prefers(candidate, served, now) {
		f.served.Store(candidate)
		if served != nil {
			f.mu.Lock()
			f.renewals++
			f.mu.Unlock()
		}
		f.log.Info("serving a new certificate", "file", f.certFile,
			"notBefore", candidate.Leaf.NotBefore, "notAfter", candidate.Leaf.NotAfter)
	}
	f.logStatus(f.Status().Err)
}

// logStatus logs an error once when it appears and when it changes, and logs when there is no error any more.
func (f *files) logStatus(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	f.mu.Lock()
	logged := f.logged
	f.logged = text
	f.mu.Unlock()
	switch {
	case text == logged:
	case text != "":
		f.log.Error(err, "the certificate files need attention; the previous certificate is still served")
	default:
		f.log.Info("the certificate files are valid again")
	}
}

// roots returns the CAs in the CAFile. It returns nil if there is no CAFile.
func (f *files) roots() *roots {
	if f.ca == nil {
		return nil
	}
	ca, _ := f.ca.Get()
	return ca
}

func (f *files) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if c := f.served.Load(); c != nil {
		return c, nil
	}
	return nil, f.nothing()
}

func (f *files) nothing() error {
	if err := f.pair.Err(); err != nil {
		return fmt.Errorf("there is no serving certificate: %w", err)
	}
	return errNotStarted
}

func (f *files) Bundle() []byte { return f.roots().pem() }

func (f *files) Status() Status {
	served, ca, now := f.served.Load(), f.roots(), time.Now()
	if served == nil {
		return Status{Err: f.nothing(), NotReady: f.nothing()}
	}
	st := ca.judge(served, now)
	f.mu.Lock()
	st.Renewals = f.renewals
	f.mu.Unlock()
	errs := []error{f.pair.Err()}
	if f.ca != nil {
		errs = append(errs, f.ca.Err())
	}
	if candidate, _ := f.pair.Get(); errs[0] == nil && !sameChain(candidate, served) {
		if found := ca.judge(candidate, now); !found.Trusted { // else it is about to be served
			errs = append(errs, fmt.Errorf("%s: %w; an earlier certificate is served instead, which expires at %s", f.certFile, found.Err, inUTC(st.NotAfter)))
		}
	}
	if st.Err != nil {
		errs = append(errs, fmt.Errorf("the certificate served from %s: %w", f.certFile, st.Err))
	}
	st.Err = errors.Join(errs...)
	return st
}

// parsePair parses a certificate with its key. Its error names the file at fault if that is clear.
func parsePair(certFile string, certPEM []byte, keyFile string, keyPEM []byte) (*tls.Certificate, error) {
	for _, file := range []struct {
		path    string
		content []byte
	}{{certFile, certPEM}, {keyFile, keyPEM}} {
		if len(bytes.TrimSpace(file.content)) == 0 {
			return nil, fmt.Errorf("%s is empty", filepath.Base(file.path))
		}
	}
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return nil, fmt.Errorf("certificate and key do not match: %w", err)
	}
	if pair.Leaf == nil { // with GODEBUG=x509keypairleaf=0
		if pair.Leaf, err = x509.ParseCertificate(pair.Certificate[0]); err != nil {
			return nil, err
		}
	}
	return &pair, nil
}
