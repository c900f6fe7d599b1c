// SPDX-License-Identifier: Apache-2.0

package proof

import (
	"context"
	"errors"
	"net"
	"net/url"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/admitkit/admitkit/internal/apiserver"
)

// late is how much later than the others the last of several API servers sees a change.
const late = time.Second

// token authenticates the administrator at each API server.
const token = "proof"

// A controlPlane is one API server, or several on one etcd behind a balancer. The last of several sees all changes late.
type controlPlane struct {
	servers []*apiserver.Server
	clients []*kubernetes.Clientset // of each API server
	// kubeconfig connects to the balancer, or to the only API server.
	kubeconfig []byte
	front      *front
	etcd       *lateEtcd
	next       atomic.Int64
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
			_ = p.stop() // err matters more
		}
	}()
	for i := range number {
		o := apiserver.Options{Files: map[string][]byte{"token-auth-file": []byte(token + `,admin,admin,"system:masters"` + "\n")}}
		if i > 0 {
			o.Etcd = p.servers[0].Etcd
		}
		if i > 0 && i == number-1 {
			if p.etcd, err = newLateEtcd(o.Etcd, late); err != nil {
				return nil, err
			}
			o.Etcd = p.etcd.url
		}
		s, err := apiserver.Run(ctx, o)
		if err != nil {
			return nil, err
		}
		p.servers = append(p.servers, s)
		config := rest.CopyConfig(s.Config)
		config.QPS, config.Burst = -1, -1
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			return nil, err
		}
		p.clients = append(p.clients, client)
	}
	if p.kubeconfig = p.servers[0].Kubeconfig; number == 1 {
		return p, nil
	}
	return p, p.balance()
}

// balance starts the balancer and makes its kubeconfig.
func (p *controlPlane) balance() (err error) {
	if p.front, err = newFront(); err != nil {
		return err
	}
	var roots []byte
	for _, s := range p.servers {
		address, err := url.Parse(s.Config.Host)
		if err != nil {
			return err
		}
		p.front.backends = append(p.front.backends, address.Host)
		roots = append(roots, s.Config.CAData...)
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["proof"] = &clientcmdapi.Cluster{Server: "https://" + p.front.listener.Addr().String(), CertificateAuthorityData: roots}
	config.AuthInfos["proof"] = &clientcmdapi.AuthInfo{Token: token}
	config.Contexts["proof"] = &clientcmdapi.Context{Cluster: "proof", AuthInfo: "proof"}
	config.CurrentContext = "proof"
	p.kubeconfig, err = clientcmd.Write(*config)
	return err
}

// client returns the client of the next API server in turn.
func (p *controlPlane) client() *kubernetes.Clientset {
	return p.clients[int(p.next.Add(1))%len(p.clients)]
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
	backends []string
	next     atomic.Int64
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
	for range f.backends {
		conn, err := net.Dial("tcp", f.backends[int(f.next.Add(1))%len(f.backends)])
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
