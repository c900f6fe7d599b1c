// SPDX-License-Identifier: Apache-2.0

package gohooks

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admitkit/admitkit/internal/devcert"
	"github.com/admitkit/admitkit/internal/problem"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// mark is the beginning of the line with the answer of the program. mark and the types below must match
// program/main.go.
const mark = "admitkit-answer "

type (
	request struct {
		Configure *webhook.ConfigurationOptions `json:",omitempty"`
		Serve     *serve                        `json:",omitempty"`
	}
	serve  struct{ Cert, Key, Kubeconfig string }
	answer struct {
		Error      string
		Fields     []FieldError
		Hooks      []Hook
		Mutating   *admissionregistrationv1.MutatingWebhookConfiguration
		Validating *admissionregistrationv1.ValidatingWebhookConfiguration
		Addr       string
		Deps       bool
		Rules      map[string][]rbacv1.PolicyRule
	}
)

// Describe returns the configuration objects of the hooks, as webhook.Configurations does. Either object can be nil.
func (p *Program) Describe(ctx context.Context, o webhook.ConfigurationOptions) (*admissionregistrationv1.MutatingWebhookConfiguration, *admissionregistrationv1.ValidatingWebhookConfiguration, error) {
	a, err := p.ask(ctx, request{Configure: &o})
	if err != nil {
		return nil, nil, err
	}
	return a.Mutating, a.Validating, nil
}

// StartOptions are the options of Start. The hooks are served on the loopback interface.
type StartOptions struct {
	// Kubeconfig is the file of the cluster that the hooks read. Without one, their requests to the API server fail.
	Kubeconfig string
	// Log receives the output of the hooks. The default is the log of Build.
	Log io.Writer
}

// A Process serves hooks. Its methods are safe for concurrent use.
type Process struct {
	// URL is the base URL of the hooks, without their paths.
	URL string
	// CA is the CA certificate of the serving certificate, in PEM.
	CA []byte

	r    *running
	once sync.Once
}

// Start starts a process that serves the hooks, and returns when it is ready. The process ends on Close, when ctx ends,
// or when the calling process ends.
func (p *Program) Start(ctx context.Context, o StartOptions) (*Process, error) {
	cert, key, err := servingCert(p.ca)
	if err != nil {
		return nil, err
	}
	log := p.log
	if o.Log != nil {
		log = &lines{each: to(o.Log)}
	}
	r, err := p.start(ctx, log, request{Serve: &serve{Cert: cert, Key: key, Kubeconfig: o.Kubeconfig}})
	if err != nil {
		return nil, err
	}
	a, err := r.wait(ctx)
	if err != nil {
		r.end()
		return nil, err
	}
	return &Process{URL: "https://" + a.Addr, CA: slices.Clone(p.ca.Bundle), r: r}, nil
}

// Done returns a channel that is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.r.done }

// Err returns the reason for the end of the process. It is nil while the process runs, and after Close.
func (p *Process) Err() error {
	select {
	case <-p.r.done:
		return p.r.ended(false)
	default:
		return nil
	}
}

// Close ends the process after its calls in flight, and waits for its end.
func (p *Process) Close() {
	p.once.Do(p.r.end)
}

// servingCert returns a serving certificate for the loopback interface and its key, in PEM.
func servingCert(ca *devcert.CA) (cert, key string, err error) {
	config, err := ca.Serving("127.0.0.1", "localhost")
	if err != nil {
		return "", "", err
	}
	pair := config.Certificates[0]
	der, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		return "", "", err
	}
	leaf := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]})
	return string(leaf), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})), nil
}

// ask runs the program with req and returns its answer.
func (p *Program) ask(ctx context.Context, req request) (*answer, error) {
	r, err := p.start(ctx, p.log, req)
	if err != nil {
		return nil, err
	}
	a, err := r.wait(ctx)
	r.end()
	return a, err
}

// running is a process of the program.
type running struct {
	pkg      string
	cmd      *exec.Cmd
	stdin    io.Closer
	answers  chan *answer
	done     chan struct{}
	answered atomic.Bool

	mu     sync.Mutex
	tail   []string // last lines of its output
	closed bool     // end was called
	err    error    // result of Wait; set before done is closed
}

// grace is how long end waits for a process to end before it kills the process. It is longer than the drain timeout of
// the program.
const grace = 5 * time.Second

func (p *Program) start(ctx context.Context, log *lines, req request) (*running, error) {
	text, err := json.Marshal(req)
	if err != nil {
		return nil, err
	}
	r := &running{pkg: p.Package, answers: make(chan *answer, 1), done: make(chan struct{})}
	r.cmd = exec.CommandContext(ctx, p.file())
	r.cmd.Dir = p.work
	stdin, err := r.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	r.stdin = stdin
	out := &lines{each: func(line string) { r.read(line, log) }}
	messages := &lines{each: func(line string) { r.remember(line); log.each(line) }}
	r.cmd.Stdout, r.cmd.Stderr = out, messages
	r.cmd.Cancel = r.interrupt
	r.cmd.WaitDelay = grace
	setAttributes(r.cmd)
	started := make(chan error)
	go func() {
		// Pdeathsig kills the process when the thread that started it ends, so this thread must outlive the process.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := r.cmd.Start()
		started <- err
		if err != nil {
			return
		}
		err = r.cmd.Wait()
		out.flush()
		messages.flush()
		r.mu.Lock()
		r.err = err
		r.mu.Unlock()
		close(r.done)
	}()
	if err := <-started; err != nil {
		return nil, problem.New("cannot run the hooks of %s: %w", p.Package, err)
	}
	// If the process has already ended, wait returns the error.
	_, _ = stdin.Write(append(text, '\n'))
	return r, nil
}

// interrupt closes the standard input of a process that has answered, so that the process shuts down. A process without
// an answer may hang, so interrupt kills it.
func (r *running) interrupt() error {
	if r.answered.Load() {
		return r.stdin.Close()
	}
	return r.cmd.Process.Kill()
}

// read handles a line of standard output: the answer, or a line that the package printed.
func (r *running) read(line string, log *lines) {
	text, marked := strings.CutPrefix(line, mark)
	if !marked {
		if line != "" {
			r.remember(line)
			log.each(line)
		}
		return
	}
	a := &answer{}
	if err := json.NewDecoder(bytes.NewReader([]byte(text))).Decode(a); err != nil {
		a.Error = fmt.Sprintf("cannot decode the answer of the program: %v", err)
	}
	r.answered.Store(true)
	select {
	case r.answers <- a:
	default: // drop further answers until wait has received the first one
	}
}

// remember adds a line to the tail, which is part of the error when the process ends.
func (r *running) remember(line string) {
	const most = 20
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.tail = append(r.tail, line); len(r.tail) > most {
		r.tail = r.tail[1:]
	}
}

// wait returns the answer of the process. It returns an error if ctx or the process ends first.
func (r *running) wait(ctx context.Context) (*answer, error) {
	select {
	case a := <-r.answers:
		return a.checked(r.pkg)
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-r.done:
	}
	select {
	case a := <-r.answers: // the process answered and ended
		return a.checked(r.pkg)
	default:
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return nil, r.ended(true)
}

func (a *answer) checked(pkg string) (*answer, error) {
	if a.Error != "" {
		return nil, &RegistrationError{problem.New("the hooks of %s have errors:\n%s", pkg, a.Error), a.Fields}
	}
	return a, nil
}

// A RegistrationError is an error that the hooks returned, or an error in their configuration.
type RegistrationError struct {
	error
	// Fields are the field errors of webhook.Configurations.
	Fields []FieldError
}

func (e *RegistrationError) Unwrap() error { return e.error }

// A FieldError names the field of a field.Error and its type.
type FieldError struct {
	Type  field.ErrorType
	Field string
}

// LacksAddress reports whether a webhook has neither a URL nor a Service.
func (e *RegistrationError) LacksAddress() bool {
	return slices.ContainsFunc(e.Fields, func(f FieldError) bool {
		return f.Type == field.ErrorTypeRequired && strings.HasSuffix(f.Field, "].clientConfig")
	})
}

// ended returns an error with the exit status and the last output of the process. After end, it returns nil unless
// always is true.
func (r *running) ended(always bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed && !always {
		return nil
	}
	how := "exit status 0"
	var exit *exec.ExitError
	if errors.As(r.err, &exit) {
		how = exit.String()
	} else if r.err != nil {
		how = r.err.Error()
	}
	return problem.New("the program that runs the hooks of %s has ended: %s", r.pkg, strings.Join(append([]string{how}, r.tail...), "\n"))
}

// end ends the process and waits for it. It kills the process after grace.
func (r *running) end() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	_ = r.interrupt() // the process may have ended
	select {
	case <-r.done:
		return
	case <-time.After(grace):
		_ = r.cmd.Process.Kill() // the process may have just ended
	}
	<-r.done
}
