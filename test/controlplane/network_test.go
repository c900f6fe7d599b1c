// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"path/filepath"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// network acts as kube-proxy and the network of the Pods for the API server. The API server opens its connections to
// webhooks through it (KEP-1281). It reads the EndpointSlices of kube-controller-manager.
var network = &podNetwork{addresses: map[string]string{}}

type podNetwork struct {
	mu        sync.Mutex
	addresses map[string]string // loopback addresses, by the IP of the Pod
}

func (n *podNetwork) connect(podIP, address string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.addresses[podIP] = address
}

func (n *podNetwork) disconnect(podIP string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.addresses, podIP)
}

// start serves HTTP CONNECT on a socket, and returns the configuration that makes the API server use it.
func (n *podNetwork) start(ctx context.Context) (configuration []byte) {
	GinkgoHelper()
	socket := filepath.Join(GinkgoT().TempDir(), "network")
	listener, err := (&net.ListenConfig{}).Listen(ctx, "unix", socket)
	Expect(err).NotTo(HaveOccurred())
	server := &http.Server{Handler: n} //nolint:gosec // only the API server connects
	go func() { _ = server.Serve(listener) }()
	DeferCleanup(server.Close)
	return fmt.Appendf(nil, `apiVersion: apiserver.k8s.io/v1beta1
kind: EgressSelectorConfiguration
egressSelections:
- name: cluster
  connection: {proxyProtocol: HTTPConnect, transport: {uds: {udsName: %s}}}
`, socket)
}

// ServeHTTP connects the API server with a ready Pod of the Service with the requested cluster IP.
func (n *podNetwork) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	to, err := n.dial(r.Context(), r.Host)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer func() { _ = to.Close() }() // the API server sees that the connection ended
	from, buffered, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	defer func() { _ = from.Close() }()
	if _, err := io.WriteString(from, "HTTP/1.1 200 OK\r\n\r\n"); err != nil {
		return
	}
	go func() {
		_, _ = io.Copy(to, buffered) // ends with the connection
		_ = to.Close()
	}()
	_, _ = io.Copy(from, to)
}

func (n *podNetwork) dial(ctx context.Context, host string) (net.Conn, error) {
	ip, _, err := net.SplitHostPort(host)
	if err != nil {
		return nil, err
	}
	services, err := clients.CoreV1().Services("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, s := range services.Items {
		if s.Spec.ClusterIP != ip {
			continue
		}
		ready, err := n.endpoints(ctx, &s)
		if err != nil {
			return nil, err
		}
		if len(ready) == 0 {
			return nil, fmt.Errorf("connection refused: Service %s/%s has no ready endpoint", s.Namespace, s.Name)
		}
		n.mu.Lock()
		address := n.addresses[ready[rand.IntN(len(ready))]]
		n.mu.Unlock()
		return (&net.Dialer{}).DialContext(ctx, "tcp", address) // fails for the address of a Pod that is gone
	}
	return nil, fmt.Errorf("no Service has the address %s", ip)
}

// endpoints returns the addresses of the ready Pods of a Service.
func (n *podNetwork) endpoints(ctx context.Context, s *corev1.Service) (ready []string, err error) {
	slices, err := clients.DiscoveryV1().EndpointSlices(s.Namespace).List(ctx, metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + s.Name})
	if err != nil {
		return nil, err
	}
	for _, slice := range slices.Items {
		for _, e := range slice.Endpoints {
			if e.Conditions.Ready != nil && *e.Conditions.Ready {
				ready = append(ready, e.Addresses...)
			}
		}
	}
	return ready, nil
}
