// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
)

// A kubelet forwards connections to Pods. It speaks the protocol of a kubelet with the library of the kubelet, and
// leads to the network of the rig.
type kubelet struct {
	network *network
	mu      sync.Mutex
	pods    map[string]string // namespace/name to IP
}

// serveKubelet serves a kubelet at an address of the cluster.
func (n *network) serveKubelet(t *testing.T, address string) *kubelet {
	t.Helper()
	k := &kubelet{network: n, pods: map[string]string{}}
	server := httptest.NewTLSServer(k)
	t.Cleanup(server.Close)
	n.route(t, address, server.Listener.Addr().String())
	return k
}

func (k *kubelet) add(pod *corev1.Pod) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.pods[pod.Namespace+"/"+pod.Name] = pod.Status.PodIP
}

// ServeHTTP answers /portForward/NAMESPACE/POD.
func (k *kubelet) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	k.mu.Lock()
	ip := k.pods[strings.TrimPrefix(r.URL.Path, "/portForward/")]
	k.mu.Unlock()
	if ip == "" {
		http.NotFound(w, r)
		return
	}
	if _, err := httpstream.Handshake(r, w, []string{"portforward.k8s.io"}); err != nil {
		return
	}
	streams := make(chan httpstream.Stream, 2)
	connection := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(s httpstream.Stream, _ <-chan struct{}) error {
		streams <- s
		return nil
	})
	if connection == nil {
		return
	}
	defer func() { _ = connection.Close() }()
	failure, data := <-streams, <-streams
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = connection.Close() })
	defer stop()
	go func() {
		<-connection.CloseChan()
		cancel()
	}()
	target, err := k.network.dial(ctx, "tcp", net.JoinHostPort(ip, data.Headers().Get(corev1.PortHeader)))
	if err != nil {
		fmt.Fprintf(failure, "error forwarding port %s to pod: %v", data.Headers().Get(corev1.PortHeader), err)
		_ = failure.Close()
		_ = data.Close()
		<-connection.CloseChan()
		return
	}
	defer func() { _ = target.Close() }()
	_ = failure.Close()
	go func() {
		_, _ = io.Copy(data, target) // the connection has ended
		_ = data.Close()
	}()
	go func() { _, _ = io.Copy(target, data) }()
	<-connection.CloseChan()
}
