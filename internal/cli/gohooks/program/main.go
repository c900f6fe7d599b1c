// SPDX-License-Identifier: Apache-2.0

// Program runs the hooks of a package for the admitkit command. It is built in the module of that package, together
// with a generated file that names the hooks. Therefore it uses only the public API of admitkit.
//
// It reads one line of JSON from standard input and writes one line with the answer to standard output. It ends when
// its standard input ends.
package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"

	"github.com/go-logr/logr"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/klog/v2"

	"github.com/admitkit/admitkit/pkg/webhook"
)

// mark begins the line with the answer, because the package may also print to standard output.
const mark = "admitkit-answer "

// drainTimeout limits how long calls in flight may take after the end of standard input.
const drainTimeout = 3 * time.Second

// A request is the input of the program. Configure requests the configuration objects, and Serve starts a server for
// the hooks. The zero value requests a list of the hooks.
type request struct {
	Configure *webhook.ConfigurationOptions
	Serve     *serve
}

type serve struct {
	Cert, Key  string // in PEM
	Kubeconfig string // file of the cluster that the hooks read, or empty
}

type answer struct {
	Error      string
	Fields     []fieldError // the field errors in Error
	Hooks      []named
	Mutating   *admissionregistrationv1.MutatingWebhookConfiguration
	Validating *admissionregistrationv1.ValidatingWebhookConfiguration
	Addr       string
	Deps       bool // the hooks take dependencies
	Rules      map[string][]rbacv1.PolicyRule
}

type fieldError struct {
	Type  field.ErrorType
	Field string
}

type named struct {
	Symbol, Name, Path string
	Mutating           bool
}

// logger writes warnings and errors of the server and of the hooks to standard error.
var logger = logr.FromSlogHandler(newTraceHandler(os.Stderr))

func main() {
	klog.SetLoggerWithOptions(logger.WithName("client-go"), klog.ContextualLogger(true)) // for the errors of caches
	if err := answerRequest(bufio.NewReader(os.Stdin), os.Stdout); err != nil {
		reply(os.Stdout, answer{Error: lines(err)})
		os.Exit(1)
	}
}

// answerRequest reads a request and answers it. The answer contains the errors of the hooks. If the server fails,
// answerRequest returns its error.
func answerRequest(in *bufio.Reader, out io.Writer) error {
	var req request
	line, err := in.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &req)
	}
	ctx, stop := context.WithCancel(logr.NewContext(context.Background(), logger))
	defer stop()
	var found hookList
	if err == nil {
		kubeconfig := ""
		if req.Serve != nil {
			kubeconfig = req.Serve.Kubeconfig
		}
		err = find(ctx, kubeconfig, &found)
	}
	if err != nil {
		reply(out, answer{Error: lines(err)})
		return nil
	}
	switch {
	case req.Configure != nil:
		a := found.answer()
		if a.Mutating, a.Validating, err = webhook.Configurations(*req.Configure, found.hooks...); err != nil {
			a.Error, a.Fields = lines(err), fieldErrors(err)
		}
		reply(out, a)
	case req.Serve != nil:
		return run(ctx, stop, in, out, req.Serve, &found)
	default:
		reply(out, found.answer())
	}
	return nil
}

func reply(out io.Writer, a answer) {
	text, err := json.Marshal(a)
	if err != nil {
		text, _ = json.Marshal(answer{Error: err.Error()}) // marshaling a string cannot fail
	}
	// The answer starts on a new line, because the package may have printed an incomplete line.
	fmt.Fprintf(out, "\n%s%s\n", mark, text)
}

// lines returns one line for each of the joined errors.
func lines(err error) string {
	var all []error
	if joined, ok := any(err).(interface{ Unwrap() []error }); ok {
		all = joined.Unwrap()
	} else if aggregate, ok := any(err).(interface{ Errors() []error }); ok { // utilerrors.Aggregate of k8s.io/apimachinery
		all = aggregate.Errors()
	} else {
		return err.Error()
	}
	var text []string
	for _, one := range all {
		text = append(text, lines(one))
	}
	return strings.Join(text, "\n")
}

// fieldErrors returns the field errors that are joined in err.
func fieldErrors(err error) []fieldError {
	if joined, ok := any(err).(interface{ Unwrap() []error }); ok {
		var all []fieldError
		for _, one := range joined.Unwrap() {
			all = append(all, fieldErrors(one)...)
		}
		return all
	}
	var one *field.Error
	if !errors.As(err, &one) {
		return nil
	}
	return []fieldError{{one.Type, one.Field}}
}

// run serves the hooks until standard input ends.
func run(ctx context.Context, stop func(), in io.Reader, out io.Writer, s *serve, found *hookList) error {
	cert, err := tls.X509KeyPair([]byte(s.Cert), []byte(s.Key))
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(io.Discard, in) // returns at the end of standard input
		stop()
		time.AfterFunc(drainTimeout, func() { os.Exit(0) })
	}()
	server := webhook.NewServer(webhook.Options{
		Listener: listener, TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{cert}},
		ShutdownDelay: -1, DrainTimeout: drainTimeout,
		Logger: logger,
	}, found.hooks...)
	failed := make(chan error, 2)
	if found.start != nil {
		go func() {
			if err := found.start(ctx); err != nil && ctx.Err() == nil {
				failed <- fmt.Errorf("background work of the hooks: %w", err)
				stop()
			}
		}()
	}
	go func() {
		addr, err := server.Addr(ctx)
		if err == nil {
			err = found.waitReady(ctx, os.Stderr)
		}
		if err != nil {
			failed <- err
			stop()
			return
		}
		a := found.answer()
		a.Addr = addr.String()
		reply(out, a)
	}()
	if err := server.Start(ctx); err != nil && ctx.Err() == nil {
		return err
	}
	select {
	case err := <-failed:
		if errors.Is(err, context.Canceled) {
			return nil
		}
		return err
	default:
		return nil
	}
}

const (
	// syncTimeout bounds how long the caches of the hooks may take to sync.
	syncTimeout = 30 * time.Second
	// noticeAfter is the time after which waitReady says what it waits for.
	noticeAfter = 2 * time.Second
)

// waitReady waits until the caches of the hooks have synced. If that takes long, it says so in the log.
func (f *hookList) waitReady(ctx context.Context, log io.Writer) error {
	if f.ready == nil {
		return nil
	}
	start, noticed := time.Now(), false
	deadline := start.Add(syncTimeout)
	for {
		err := f.ready(ctx)
		switch {
		case err == nil:
			return nil
		case time.Now().After(deadline):
			return fmt.Errorf("the hooks were not ready after %s: %w: check that the program has the RBAC rules of deps.Needs", syncTimeout, err)
		case !noticed && time.Since(start) > noticeAfter:
			noticed = true
			fmt.Fprintf(log, "the new hooks answer when they are ready, or not at all after %s: %v\n", syncTimeout, err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// A hookList has the hooks, in the order in which the generated file adds them.
type hookList struct {
	hooks []*webhook.Hook
	names []named

	deps  bool // Hooks takes dependencies; start, ready and rules are set only then
	start func(context.Context) error
	ready func(context.Context) error
	rules map[string][]rbacv1.PolicyRule
}

func (f *hookList) answer() answer { return answer{Hooks: f.names, Deps: f.deps, Rules: f.rules} }

func (f *hookList) add(symbol string, h *webhook.Hook, err error) error {
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", symbol, err)
	case h == nil:
		return fmt.Errorf("%s is nil: assign the result of webhook.Mutating or webhook.Validating", symbol)
	}
	f.hooks = append(f.hooks, h)
	f.names = append(f.names, named{symbol, h.Name(), h.Path(), h.Mutating()})
	return nil
}

// result returns a function that adds a hook to the list. Its arguments are the results of the package's function named
// symbol.
func (f *hookList) result(symbol string) func(*webhook.Hook, error) error {
	return func(h *webhook.Hook, err error) error { return f.add(symbol, h, err) }
}

// all adds the hooks that the function Hooks returns.
func (f *hookList) all(hooks []*webhook.Hook, err error) error {
	if err != nil {
		return fmt.Errorf("Hooks: %w", err)
	}
	var errs []error
	for i, h := range hooks {
		errs = append(errs, f.add(fmt.Sprintf("Hooks()[%d]", i), h, nil))
	}
	return errors.Join(errs...)
}

// variable adds the value of a variable if it is a hook.
func (f *hookList) variable(symbol string, value any) error {
	if h, ok := value.(*webhook.Hook); ok {
		return f.add(symbol, h, nil)
	}
	return nil
}
