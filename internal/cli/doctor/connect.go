// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admitkit/admitkit/internal/doctor"
)

// These limits bound the connections to webhooks.
const (
	maxConnections = 8  // at the same time
	maxEndpoints   = 5  // of a Service
	maxPaths       = 20 // of a server
)

// A destination is one server of a backend, and the function that connects to it.
type destination struct {
	address, pod, via string
	dial              func(context.Context) (net.Conn, error)
}

// connect makes a TLS handshake with those servers of each backend that can be reached from here.
func (r *reader) connect(ctx context.Context) {
	var lock sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(maxConnections)
	paths := map[doctor.Backend][]string{}
	for _, t := range r.s.Targets {
		list := paths[t.Backend]
		if t.Kind != doctor.Aggregated && !slices.Contains(list, t.Path) && len(list) < maxPaths {
			list = append(list, t.Path)
		}
		paths[t.Backend] = list
	}
	for backend, paths := range paths {
		if !r.s.IsPlaced(backend) || backend.IsAPIServer() {
			continue
		}
		for i, w := range r.destinations(backend) {
			requests := paths
			if i > 0 {
				requests = nil // one server of a Service suffices
			}
			group.Go(func() error {
				r.step("connecting to %s", w.address)
				c, err := r.try(ctx, backend, w, requests)
				lock.Lock()
				defer lock.Unlock()
				if err != nil {
					r.notForwarded(ctx, backend, err)
				} else {
					r.s.Connections[backend] = append(r.s.Connections[backend], c)
				}
				return nil
			})
		}
	}
	_ = group.Wait() // no function returns an error
	for _, list := range r.s.Connections {
		slices.SortFunc(list, func(a, b doctor.Connection) int { return cmp.Compare(a.Address, b.Address) })
	}
}

// destinations returns the servers of a backend that can be reached from here.
func (r *reader) destinations(b doctor.Backend) []destination {
	direct := func(address string) destination {
		return destination{address: address, via: "from this machine", dial: func(ctx context.Context) (net.Conn, error) { return r.dial(ctx, "tcp", address) }}
	}
	if !b.IsService() {
		u, err := url.Parse(b.URL)
		if err != nil {
			return nil
		}
		if isLoopback(u.Hostname()) && !r.isServerHere() {
			r.gap("connect to", schema.GroupResource{Resource: b.URL}, "", errOtherMachine)
			return nil
		}
		return []destination{direct(net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), "443")))}
	}
	service := r.s.Services[b.Service]
	if service != nil && service.Spec.Type == corev1.ServiceTypeExternalName {
		return []destination{direct(net.JoinHostPort(service.Spec.ExternalName, strconv.Itoa(int(b.Port))))}
	}
	var all []destination
	endpoints := r.s.Endpoints(b)
	for _, e := range endpoints[:min(len(endpoints), maxEndpoints)] {
		w := direct(net.JoinHostPort(e.Address, strconv.Itoa(int(e.Port))))
		w.pod = e.Pod
		if !r.direct {
			if e.Pod == "" {
				continue // the kubelet forwards to Pods only
			}
			w.via = "through the kubelet"
			w.dial = func(ctx context.Context) (net.Conn, error) {
				return forward(ctx, r.config, b.Service.Namespace, e.Pod, e.Port)
			}
		}
		all = append(all, w)
	}
	return all
}

// errOtherMachine is the reason why doctor does not try a loopback address.
var errOtherMachine = errors.New("this is an address of the API server's own machine: with --probe, the API server calls it")

// isLoopback reports whether a host is a loopback address.
func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// isServerHere reports whether the API server can run on this machine.
func (r *reader) isServerHere() bool {
	u, err := url.Parse(r.config.Host)
	return err == nil && isLoopback(u.Hostname())
}

// notForwarded records that the API server or a kubelet does not forward connections. It asks the API server whether a
// permission is missing, because the error does not show it.
func (r *reader) notForwarded(ctx context.Context, b doctor.Backend, err error) {
	what := schema.GroupResource{Resource: "pods/portforward"}
	if r.may(ctx, authorizationv1.ResourceAttributes{Namespace: b.Service.Namespace, Verb: "create", Resource: "pods", Subresource: "portforward"}) == no {
		r.gap("create", what, b.Service.Namespace, apierrors.NewForbidden(what, "", err))
		return
	}
	r.gap("connect to", what, b.Service.Namespace, err)
}

// try makes a handshake, and requests each path. It returns an error if no connection could be tried.
func (r *reader) try(ctx context.Context, b doctor.Backend, w destination, paths []string) (doctor.Connection, error) {
	c := doctor.Connection{Address: w.address, Pod: w.pod, Via: w.via}
	within, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	connection, err := w.dial(within)
	switch {
	case err != nil && w.via == "through the kubelet":
		return c, err
	case err != nil:
		c.Problem, c.Error = problemOf(err), err.Error()
		return c, nil
	}
	secure := tls.Client(connection, &tls.Config{
		InsecureSkipVerify: true, // the checks verify the certificates; nothing secret is sent
		ServerName:         b.Host(), NextProtos: []string{"http/1.1"},
		VerifyPeerCertificate: func(chain [][]byte, _ [][]*x509.Certificate) error {
			for _, der := range chain {
				one, err := x509.ParseCertificate(der)
				if err != nil {
					return err
				}
				c.Chain = append(c.Chain, one)
			}
			return nil
		},
	})
	if err := secure.HandshakeContext(within); err != nil {
		_ = connection.Close()
		c.Problem, c.Error = problemOf(err), err.Error()
		if within.Err() != nil {
			c.Problem = doctor.Silent
		}
		return c, nil
	}
	c.Answers = r.request(ctx, b, w, secure, paths)
	return c, nil
}

// problemOf classifies the error of a connection or handshake.
func problemOf(err error) doctor.Problem {
	var name *net.DNSError
	var forwarded errForwarded
	var record tls.RecordHeaderError
	var alert tls.AlertError
	var operation *net.OpError
	switch {
	case errors.As(err, &name):
		return doctor.NoHost
	case errors.Is(err, syscall.ECONNREFUSED), errors.As(err, &forwarded):
		return doctor.Refused
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded), errors.As(err, &operation) && operation.Timeout():
		return doctor.Silent
	case errors.As(err, &record):
		return doctor.NotTLS
	case errors.As(err, &alert), errors.As(err, &operation) && operation.Op == "remote error":
		return doctor.Alert
	}
	return doctor.Broken
}

// request sends a GET for each path and, if it gets 404, a POST without a body. A webhook cannot decide anything without
// an AdmissionReview. The first request uses the connection.
func (r *reader) request(ctx context.Context, b doctor.Backend, w destination, connection net.Conn, paths []string) map[string]doctor.Answer {
	first := make(chan net.Conn, 1)
	first <- connection
	transport := &http.Transport{
		MaxConnsPerHost: 1,
		DialTLSContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			select {
			case c := <-first:
				return c, nil
			default:
			}
			next, err := w.dial(ctx)
			if err != nil {
				return nil, err
			}
			secure := tls.Client(next, &tls.Config{InsecureSkipVerify: true, ServerName: b.Host(), NextProtos: []string{"http/1.1"}})
			return secure, secure.HandshakeContext(ctx)
		},
	}
	defer func() {
		transport.CloseIdleConnections()
		select {
		case c := <-first:
			_ = c.Close() // nothing was sent
		default:
		}
	}()
	client := &http.Client{Transport: transport, Timeout: r.timeout, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answers := map[string]doctor.Answer{}
	for _, path := range paths {
		var a doctor.Answer
		var err error
		if a.Get, err = status(ctx, client, http.MethodGet, b, path); err == nil && a.Get == http.StatusNotFound {
			a.Post, err = status(ctx, client, http.MethodPost, b, path)
		}
		if err == nil {
			answers[path] = a
		}
	}
	return answers
}

func status(ctx context.Context, client *http.Client, method string, b doctor.Backend, path string) (int, error) {
	host := strings.TrimPrefix(b.URL, "https://")
	if b.IsService() {
		host = net.JoinHostPort(b.Host(), strconv.Itoa(int(b.Port)))
	}
	request, err := http.NewRequestWithContext(ctx, method, fmt.Sprintf("https://%s/%s", host, strings.TrimPrefix(path, "/")), http.NoBody)
	if err != nil {
		return 0, err
	}
	request.Header.Set("User-Agent", "admitkit")
	answer, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	const most = 64 << 10
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, most)) // so that the connection can be used again
	return answer.StatusCode, answer.Body.Close()
}
