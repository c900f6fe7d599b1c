// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/api/imagepolicy/v1alpha1"

	"github.com/admitkit/admitkit/examples/gallery/internal/gallerytest"
	"github.com/admitkit/admitkit/pkg/webhook/webhooktest"
)

// An imageService answers questions about images. It allows every image, unless it has a fault.
type imageService struct {
	*httptest.Server
	address string
	reply   atomic.Pointer[http.HandlerFunc] // nil to allow
}

func newImageService(t *testing.T) *imageService {
	t.Helper()
	s := &imageService{address: "127.0.0.1:0"}
	s.start(t)
	t.Cleanup(func() { s.Close() })
	return s
}

// start starts the service, the second time at the same address.
func (s *imageService) start(t *testing.T) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", s.address)
	if err != nil {
		t.Fatal(err)
	}
	s.address = listener.Addr().String()
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if reply := s.reply.Load(); reply != nil {
			(*reply)(w, r)
			return
		}
		var review v1alpha1.ImageReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		review.Status.Allowed = true
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(review)
	}))
	_ = s.Listener.Close()
	s.Listener = listener
	s.Start()
}

// configuration returns a configuration of ImagePolicyWebhook that asks the service and keeps no answer.
func (s *imageService) configuration(t *testing.T, defaultAllow bool) string {
	t.Helper()
	kubeconfig := write(t, "{apiVersion: v1, kind: Config, clusters: [{name: a, cluster: {server: 'http://"+s.address+"'}}], contexts: [{name: a, context: {cluster: a}}], current-context: a}")
	return fmt.Sprintf("imagePolicy: {kubeConfigFile: %s, allowTTL: -1, denyTTL: -1, retryBackoff: 1, defaultAllow: %v}", kubeconfig, defaultAllow)
}

// reviewed returns a request for a Pod with this image.
func reviewed(t *testing.T, image string) *admissionv1.AdmissionRequest {
	t.Helper()
	pod := gallerytest.Pod(func(p *corev1.Pod) { p.Spec.Containers[0].Image = image })
	return webhooktest.Request(t, admissionv1.Create, corev1.SchemeGroupVersion.WithKind("Pod"), "pods", pod, nil)
}

const imageHook = "imagepolicywebhook.example.com"

// TestImageServiceFaults breaks the service of ImagePolicyWebhook in several ways. Each Pod must be admitted if
// defaultAllow is set, and else denied. If ten questions in a row got no answer, a hook that denies does not ask for ten
// seconds, and then finds out that the service works again.
func TestImageServiceFaults(t *testing.T) {
	t.Setenv("KUBECONFIG", "")
	for _, defaultAllow := range []bool{false, true} {
		t.Run(fmt.Sprintf("defaultAllow is %v", defaultAllow), func(t *testing.T) {
			t.Parallel()
			service := newImageService(t)
			program := serve(t, nil, "--enable=ImagePolicyWebhook", "--config=ImagePolicyWebhook="+write(t, service.configuration(t, defaultAllow)))
			const short = 2 * time.Second // of each call
			working := func() {
				t.Helper()
				if got, text := program.call(t, imageHook, reviewed(t, "good"), short); got != admits || strings.Contains(text, "failed-open") {
					t.Errorf("with a service that works, the hook %s: %s", got, text)
				}
			}
			broken := func(reason string, questions int, want string) {
				t.Helper()
				var all sync.WaitGroup
				for i := range questions {
					request := reviewed(t, fmt.Sprint(reason, i))
					all.Go(func() {
						got, text := program.call(t, imageHook, request, short)
						switch {
						case defaultAllow && (got != admits || !strings.Contains(text, `"failed-open":"true"`)):
							t.Errorf("%s: the hook %s: %s", reason, got, text)
						case !defaultAllow && (got != denies || !strings.Contains(text, `"code":403`) || !strings.Contains(text, want)):
							t.Errorf("%s: the hook %s: %s", reason, got, text)
						}
					})
				}
				all.Wait()
			}
			fault := func(reply http.HandlerFunc) { service.reply.Store(&reply) }

			working()
			fault(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) })
			broken("garbage", 3, "")
			service.reply.Store(nil)
			working() // an answer resets the number of failures
			fault(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) })
			broken("code 500", 3, "")
			service.reply.Store(nil)
			working()
			service.Close()
			broken("gone", 3, "connection refused")
			service.start(t)
			working()

			const circuit = `admitkit_external_total{service="image-policy",source="circuit"}`
			if got := program.metric(t, circuit); got != 0 {
				t.Errorf("the circuit opened %v times before ten questions failed", got)
			}
			fault(func(_ http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body) // else the server does not notice that the client is gone
				<-r.Context().Done()
			})
			broken("hanging", 10, "no answer in time")
			if !defaultAllow {
				eventually(t, "the circuit opens", func() bool { // when the requests end, which is later than the calls do
					broken("hanging", 1, "")
					return program.metric(t, circuit) > 0
				})
			}
			service.reply.Store(nil)
			eventually(t, "the hook asks the service again", func() bool {
				got, text := program.call(t, imageHook, reviewed(t, "good"), short)
				return got == admits && !strings.Contains(text, "failed-open")
			})
			working()
			if got := program.metric(t, circuit); got > 0 == defaultAllow {
				t.Errorf("the circuit rejected %v questions", got)
			}
		})
	}
}
