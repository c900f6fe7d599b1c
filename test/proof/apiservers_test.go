// SPDX-License-Identifier: Apache-2.0

package proof

import (
	"context"
	"errors"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/admitkit/admitkit/internal/apiserver"
)

// late is how long the last of several API servers lags behind the others.
const late = time.Second

// token authenticates the administrator at each API server.
const token = "proof"

// A controlPlane is one API server, or several that share one etcd behind a load balancer. The last of several sees each
// change late.
type controlPlane struct {
	mu      sync.Mutex // guards servers, clients and calls while a load runs
	servers []*apiserver.Server
	clients []*kubernetes.Clientset // one for each API server, in the same order
	calls   map[*kubernetes.Clientset]*sync.WaitGroup
	// kubeconfig connects to the balancer, or to the only API server.
	kubeconfig []byte
	front      *front
	etcd       *lateEtcd
	next       int // guarded by mu, too
}

// numberOfAPIServers returns the value of ADMITKIT_APISERVERS, or 1.
func numberOfAPIServers() int {
	if n, err := strconv.Atoi(os.Getenv("ADMITKIT_APISERVERS")); err == nil && n > 1 {
		return n
	}
	return 1
}

func startControlPlane(ctx context.Context, number int) (_ *controlPlane, err error) {
	p := &controlPlane{}
	defer func() {
		if err != nil {
			_ = p.stop() // err is the error to report
		}
	}()
	for i := range number {
		etcd := ""
		if i > 0 {
			etcd = p.servers[0].Etcd
		}
		if i > 0 && i == number-1 {
			if p.etcd, err = newLateEtcd(etcd, late); err != nil {
				return nil, err
			}
			etcd = p.etcd.url
		}
		if err := p.run(ctx, etcd); err != nil {
			return nil, err
		}
	}
	if p.kubeconfig = p.servers[0].Kubeconfig; number == 1 {
		return p, nil
	}
	return p, p.balance()
}

// balance starts the balancer and writes its kubeconfig.
func (p *controlPlane) balance() (err error) {
	if p.front, err = newFront(); err != nil {
		return err
	}
	p.front.change(func(backends []string) []string {
		for _, s := range p.servers {
			backends = append(backends, addressOf(s))
		}
		return backends
	})
	config := clientcmdapi.NewConfig()
	config.Clusters["proof"] = &clientcmdapi.Cluster{Server: "https://" + p.front.listener.Addr().String(), InsecureSkipTLSVerify: true} // each API server has its own CA
	config.AuthInfos["proof"] = &clientcmdapi.AuthInfo{Token: token}
	config.Contexts["proof"] = &clientcmdapi.Context{Cluster: "proof", AuthInfo: "proof"}
	config.CurrentContext = "proof"
	p.kubeconfig, err = clientcmd.Write(*config)
	return err
}

// end stops API server i. It must not be the first one, which runs etcd.
func (p *controlPlane) end(t *testing.T, i int) {
	s := p.take(i)
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
	p.leave(s)
}

// kill kills API server i, as if its machine had lost power. The balancer notices it only after a while, as a health check
// does.
func (p *controlPlane) kill(t *testing.T, i int) {
	s := p.take(i)
	s.Kill()
	time.AfterFunc(late/2, func() { p.leave(s) })
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
}

// take removes API server i from the lists, and waits until the calls of a load to it have ended. A client that loses its
// API server cannot know the result of its call, so such calls would not show anything about webhooks.
func (p *controlPlane) take(i int) *apiserver.Server {
	p.mu.Lock()
	s, calls := p.servers[i], p.calls[p.clients[i]]
	p.servers, p.clients = slices.Delete(p.servers, i, i+1), slices.Delete(p.clients, i, i+1)
	p.mu.Unlock()
	calls.Wait()
	return s
}

// leave removes an API server from the balancer.
func (p *controlPlane) leave(s *apiserver.Server) {
	p.front.change(func(backends []string) []string {
		return slices.DeleteFunc(backends, func(b string) bool { return b == addressOf(s) })
	})
}

// add starts another API server. The last one of the list is still the late one.
func (p *controlPlane) add(t *testing.T) {
	if err := p.run(context.WithoutCancel(t.Context()), p.servers[0].Etcd); err != nil {
		t.Error(err)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.servers) - 1
	s, client := p.servers[n], p.clients[n]
	p.servers, p.clients = slices.Insert(p.servers[:n], 1, s), slices.Insert(p.clients[:n], 1, client)
	p.front.change(func(backends []string) []string { return append(backends, addressOf(s)) })
}

// run starts an API server. If etcd is empty, the API server starts its own.
func (p *controlPlane) run(ctx context.Context, etcd string) error {
	return p.runWith(ctx, apiserver.Options{Etcd: etcd, Files: map[string][]byte{"token-auth-file": []byte(token + `,admin,admin,"system:masters"` + "\n")}})
}

func (p *controlPlane) runWith(ctx context.Context, o apiserver.Options) error {
	s, err := apiserver.Run(ctx, o)
	if err != nil {
		return err
	}
	config := rest.CopyConfig(s.Config)
	config.QPS, config.Burst = -1, -1
	client, err := kubernetes.NewForConfig(config)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.calls == nil {
		p.calls = map[*kubernetes.Clientset]*sync.WaitGroup{}
	}
	p.servers, p.clients = append(p.servers, s), append(p.clients, client)
	p.calls[client] = new(sync.WaitGroup)
	return err
}

func addressOf(s *apiserver.Server) string { return strings.TrimPrefix(s.Config.Host, "https://") }

// call calls f with the client of the next API server in turn.
func (p *controlPlane) call(f func(*kubernetes.Clientset) error) error {
	p.mu.Lock()
	p.next++
	client := p.clients[p.next%len(p.clients)]
	calls := p.calls[client]
	calls.Add(1)
	p.mu.Unlock()
	defer calls.Done()
	return f(client)
}

func (p *controlPlane) stop() error {
	var errs []error
	if p.front != nil {
		errs = append(errs, p.front.listener.Close())
	}
	for i := len(p.servers) - 1; i >= 0; i-- { // the first one has the etcd
		errs = append(errs, p.servers[i].Stop())
	}
	if p.etcd != nil {
		errs = append(errs, p.etcd.stop())
	}
	return errors.Join(errs...)
}

// A front forwards each connection to the next API server in turn, as a load balancer does. It skips an API server that
// does not accept connections.
type front struct {
	listener net.Listener
	mu       sync.Mutex
	backends []string
	next     int
}

// change changes the list of the API servers.
func (f *front) change(edit func([]string) []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.backends = edit(slices.Clone(f.backends))
}

// choose returns the next API server, and how many there are.
func (f *front) choose() (address string, number int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.next++
	return f.backends[f.next%len(f.backends)], len(f.backends)
}

func newFront() (*front, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	f := &front{listener: listener}
	go accept(listener, f.forward)
	return f, nil
}

// accept passes each connection to handle, until the listener is closed.
func accept(listener net.Listener, handle func(*net.TCPConn)) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		go handle(conn.(*net.TCPConn))
	}
}

func (f *front) forward(client *net.TCPConn) {
	defer func() { _ = client.Close() }()
	for tried, number := 0, 1; tried < number; tried++ {
		var address string
		address, number = f.choose()
		conn, err := net.Dial("tcp", address)
		if err != nil {
			continue
		}
		backend := conn.(*net.TCPConn)
		var both sync.WaitGroup
		both.Go(func() { copyBytes(backend, client, func() {}) })
		both.Go(func() { copyBytes(client, backend, func() {}) })
		both.Wait()
		_ = backend.Close()
		return
	}
}
