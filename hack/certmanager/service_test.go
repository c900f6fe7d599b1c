// SPDX-License-Identifier: Apache-2.0

package certmanager

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const name = "deny-policy" // name of all objects in the manifests

// A service simulates the Service of the example. It forwards connections to the program on this machine.
type service struct {
	port   int32
	target atomic.Pointer[string]
}

// newService applies the manifests of the example. It makes the API server reach the Service on this machine.
func newService(t *testing.T) *service {
	t.Helper()
	listener, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	s := &service{port: int32(listener.Addr().(*net.TCPAddr).Port)}
	go s.relay(listener)
	kubectl(t, "apply", "-f", "testdata/shops.yaml")
	kubectl(t, "apply", "-k", "../../examples/deny-policy/manifests")
	t.Cleanup(func() { // without a controller manager the namespace cannot be deleted
		kubectl(t, "delete", "--ignore-not-found", "-n", name, "validatingwebhookconfiguration/"+name)
		kubectl(t, "delete", "-n", name, "certificates,certificaterequests,issuers,secrets,services", "--all")
	})
	kubectl(t, "delete", "-n", name, "service/"+name)
	_, err = env.clients.CoreV1().Services(name).Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost"},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	change(t, "service/port", s.port)
	return s
}

// change sets a field of the clientConfig of all webhooks.
func change(t *testing.T, field string, value any) {
	t.Helper()
	var changes []map[string]any
	for i := range configuration(t).Webhooks {
		changes = append(changes, map[string]any{"op": "add", "path": fmt.Sprintf("/webhooks/%d/clientConfig/%s", i, field), "value": value})
	}
	patch, err := json.Marshal(changes)
	if err != nil {
		t.Fatal(err)
	}
	_, err = env.clients.AdmissionregistrationV1().ValidatingWebhookConfigurations().Patch(t.Context(), name, types.JSONPatchType, patch, metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// forwardTo sets the address to which the Service forwards new connections.
func (s *service) forwardTo(addr string) { s.target.Store(&addr) }

// relay forwards connections until the listener is closed.
func (s *service) relay(listener net.Listener) {
	for {
		from, err := listener.Accept()
		if err != nil {
			return
		}
		target := s.target.Load()
		if target == nil {
			_ = from.Close()
			continue
		}
		go func() {
			defer func() { _ = from.Close() }()
			to, err := net.Dial("tcp", *target)
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(to, from)
				_ = to.Close()
			}()
			_, _ = io.Copy(from, to)
		}()
	}
}

// pause waits for d. It returns false if ctx is done first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
