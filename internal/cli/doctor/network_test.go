// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// A network stands in for the network between the API server, Services and Pods. The API server reaches the addresses of
// the cluster through an HTTP proxy, as with --egress-selector-config-file and konnectivity. The proxy leads them to
// servers on loopback.
type network struct {
	proxy  string // path of the socket of the proxy
	mu     sync.Mutex
	routes map[string]string // the address in the cluster to the address on loopback, or to silence
	// closed are the addresses that the API server cannot reach, though kubelets can: true if they give no answer, false
	// if they refuse connections.
	closed map[string]bool
}

// silence is a route that a firewall drops: connections get no answer.
const silence = "silence"

func newNetwork(t *testing.T) *network {
	t.Helper()
	folder, err := os.MkdirTemp("", "network-") //nolint:usetesting // t.TempDir is too long a path for a socket
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(folder) })
	n := &network{proxy: filepath.Join(folder, "proxy"), routes: map[string]string{}, closed: map[string]bool{}}
	listener, err := net.Listen("unix", n.proxy)
	must(t, err)
	server := &http.Server{Handler: n}
	go func() { _ = server.Serve(listener) }() // it returns when the test closes the server
	t.Cleanup(func() { _ = server.Close() })
	return n
}

// route leads an address of the cluster to an address on loopback. Without a route, connections are refused.
func (n *network) route(t *testing.T, from, to string) {
	t.Helper()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.routes[from] = to
	t.Cleanup(func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.routes, from)
	})
}

func (n *network) block(from ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, address := range from {
		n.routes[address] = silence
	}
}

func (n *network) blockAPIServer(to ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, address := range to {
		n.closed[address] = true
	}
}

func (n *network) localOnly(to ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, address := range to {
		n.closed[address] = false
	}
}

func (n *network) refuse(from ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, address := range from {
		delete(n.routes, address)
	}
}

// dial connects to an address of the cluster, as a program inside of the cluster would.
func (n *network) dial(ctx context.Context, kind, address string) (net.Conn, error) {
	n.mu.Lock()
	to, known := n.routes[address]
	n.mu.Unlock()
	switch {
	case to == silence:
		<-ctx.Done()
		return nil, ctx.Err()
	case !known:
		to = closedPort
	}
	return (&net.Dialer{}).DialContext(ctx, kind, to)
}

// dialFromHere connects to a server on loopback, or to an address of the cluster.
func (n *network) dialFromHere(ctx context.Context, kind, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	if ip := net.ParseIP(host); ip != nil && !ip.IsLoopback() {
		return n.dial(ctx, kind, address)
	}
	return (&net.Dialer{}).DialContext(ctx, kind, address)
}

// closedPort is an address that refuses connections, because no program listens at port 1 of loopback.
const closedPort = "127.0.0.1:1"

// ServeHTTP answers CONNECT requests of the API server.
func (n *network) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n.mu.Lock()
	silent, closed := n.closed[r.URL.Host]
	n.mu.Unlock()
	if silent {
		<-r.Context().Done()
		return
	}
	target, err := n.dial(r.Context(), "tcp", r.URL.Host)
	if err != nil || closed {
		http.Error(w, fmt.Sprintf("dial tcp %s: connect: connection refused", r.URL.Host), http.StatusBadGateway)
		return
	}
	defer func() { _ = target.Close() }()
	client, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer func() { _ = client.Close() }()
	if _, err := io.WriteString(client, "HTTP/1.1 200 OK\r\n\r\n"); err != nil {
		return
	}
	done := make(chan struct{}, 2)
	for _, pair := range [][2]any{{target, buffered}, {client, target}} {
		go func() {
			_, _ = io.Copy(pair[0].(io.Writer), pair[1].(io.Reader)) // the connection has ended
			done <- struct{}{}
		}()
	}
	<-done
}
