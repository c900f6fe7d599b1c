// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admitkit/admitkit/internal/devcert"
	"github.com/admitkit/admitkit/pkg/chain/internal/inprocess"
	"github.com/admitkit/admitkit/pkg/chain/internal/realserver"
)

// ifNotFound returns err if it is a NotFound error, and nil otherwise.
func ifNotFound(err error) error {
	if err != nil && strings.Contains(err.Error(), "not found") {
		return err
	}
	return nil
}

// testAddresses admits a Pod through webhooks at a URL and behind a Service. Each must be called at its own host and
// path. A call with an invalid caBundle must fail open, because its failurePolicy is Ignore.
func testAddresses(t *testing.T, c sharedServer) {
	rules := rulesFor("", "pods", "*")
	var hosts sync.Map
	handler := func(name string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			hosts.Store(name, r.Host+r.URL.Path)
			responder(allow).ServeHTTP(w, r)
		})
	}
	byURL := httptest.NewUnstartedServer(handler("url"))
	byURL.Config.ErrorLog = log.New(io.Discard, "", 0) // the API server rejects its certificate for one webhook
	byURL.StartTLS()
	defer byURL.Close()
	ca, err := devcert.NewCA()
	if err != nil {
		t.Fatal(err)
	}
	byService := httptest.NewUnstartedServer(handler("service"))
	if byService.TLS, err = ca.Serving("hook.addresses.svc"); err != nil {
		t.Fatal(err)
	}
	byService.StartTLS()
	defer byService.Close()
	at, err := url.Parse(byService.URL)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(at.Port())
	if err != nil {
		t.Fatal(err)
	}
	bundle := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: byURL.Certificate().Raw})
	a, b, d := mutatingHook("a.at.example.com", rules), mutatingHook("b.at.example.com", rules), validatingHook("d.at.example.com", rules)
	a.ClientConfig = admissionregistrationv1.WebhookClientConfig{URL: new(byURL.URL + "/a/b/"), CABundle: bundle}
	b.ClientConfig = admissionregistrationv1.WebhookClientConfig{CABundle: ca.Bundle, Service: &admissionregistrationv1.ServiceReference{
		Namespace: "addresses", Name: "hook", Port: new(int32(port)), Path: new("/mutate"), //nolint:gosec // a port
	}}
	d.ClientConfig = admissionregistrationv1.WebhookClientConfig{URL: new(byURL.URL), CABundle: []byte("none")}
	d.FailurePolicy = new(admissionregistrationv1.Ignore)
	engine := c.connect(t, configured("at.example.com", nil, a, b, d))
	service := engine.(*serverEngine)
	if err := service.server.Namespaces.Need(t.Context(), "addresses"); err != nil {
		t.Fatal(err)
	}
	err = service.server.API.Write(t.Context(), http.MethodPost, "/api/v1/namespaces/addresses/services",
		&map[string]any{"metadata": map[string]any{"name": "hook"}, "spec": map[string]any{"type": "ExternalName", "externalName": "localhost"}})
	if err != nil {
		t.Fatal(err)
	}
	result := admit(t, engine, Request{Operation: admissionv1.Create, Resource: pods, Namespace: "addresses", Object: podJSON("p", ""), DryRun: true})
	want := []string{"a.at.example.com round 0 index 0 Allowed", "b.at.example.com round 0 index 1 Allowed", "d.at.example.com round 0 index 0 FailedOpen"}
	if diff := cmp.Diff(want, trace(result)); diff != "" {
		t.Errorf("%s\n%v\n%v", diff, result.Rejection, result.Calls[0].Error)
	}
	for name, want := range map[string]string{"url": strings.TrimPrefix(byURL.URL, "https://") + "/a/b", "service": "hook.addresses.svc:" + at.Port() + "/mutate"} {
		if got, _ := hosts.Load(name); got != want {
			t.Errorf("%s: called at %v, want %s", name, got, want)
		}
	}
}

func testNoAuditLog(t *testing.T, c sharedServer) {
	rules := rulesFor("", "pods", "*")
	a, b := mutatingHook("a.silent.example.com", rules), mutatingHook("b.silent.example.com", rules)
	engine, err := Connect(c.Config, configured("silent.example.com", map[string]http.Handler{
		"a.silent.example.com": responder(allow),
		"b.silent.example.com": patching(`[{"op":"add","path":"/metadata/labels","value":{"b":"was-here"}}]`),
	}, a, b), ConnectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := engine.Close(); err != nil {
			t.Error(err)
		}
	}()
	result := admit(t, engine, Request{Operation: admissionv1.Create, Resource: pods, Namespace: "silent", Object: podJSON("p", ""), DryRun: true})
	want := []string{"a.silent.example.com round 0 index 0 Allowed", "b.silent.example.com round 0 index 1 Allowed mutated", "a.silent.example.com round 1 index 0 Allowed"}
	if diff := cmp.Diff(want, trace(result)); diff != "" {
		t.Error(diff)
	}
	if len(result.Limits) != 2 || result.Annotations != nil {
		t.Error(result.Limits, result.Annotations)
	}
}

func testOthers(t *testing.T, c sharedServer) {
	engine := c.connect(t, configured("others.example.com", map[string]http.Handler{"a.others.example.com": denying("all")},
		mutatingHook("a.others.example.com", rulesFor("*", "*", "*"))))
	a := engine.(*serverEngine).server.API
	body := []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"others"}}`)
	for _, user := range []*string{nil, new("jane")} {
		m := realserver.Message{Method: http.MethodPost, Path: "/api/v1/namespaces/default/configmaps", Body: body, Query: url.Values{"dryRun": {"All"}}}
		if user != nil {
			u := realserver.Administrator
			u.Username = *user
			m.User = &u
		}
		if err := a.Do(t.Context(), m, nil); err != nil {
			t.Error(err)
		}
	}
}

func testExistsAlready(t *testing.T, c sharedServer) {
	engine := c.connect(t, configured("there.example.com", map[string]http.Handler{"a.there.example.com": responder(allow)},
		mutatingHook("a.there.example.com", rulesFor("", "configmaps", "*"))))
	a := engine.(*serverEngine).server.API
	const path = "/api/v1/namespaces/default/configmaps"
	object := []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"there"},"data":{"mine":"yes"}}`)
	if err := a.Do(t.Context(), realserver.Message{Method: http.MethodPost, Path: path, Body: object}, nil); err != nil {
		t.Fatal(err)
	}
	configMaps := metav1.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	_, err := engine.Admit(t.Context(), Request{Operation: admissionv1.Delete, Resource: configMaps, OldObject: object})
	if err == nil || !strings.Contains(err.Error(), "exists already") {
		t.Error(err)
	}
	created := admit(t, engine, Request{Operation: admissionv1.Create, Resource: configMaps, Object: object})
	if created.Admitted() || created.Rejection.Reason != metav1.StatusReasonAlreadyExists {
		t.Error(created.Rejection)
	}
	var left realserver.Document
	if err := a.Get(t.Context(), path+"/there", &left); err != nil || left["data"] == nil {
		t.Error(err, left)
	}
	if err := a.Remove(t.Context(), path+"/there"); err != nil {
		t.Error(err)
	}
}

// testConcurrent admits many kinds of requests at once, some of them for the same object. Each result must have only
// the calls and warnings of its own request.
func testConcurrent(t *testing.T, c sharedServer) {
	rules := rulesFor("", "configmaps", "*")
	label := responder(func(req *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		r := &admissionv1.AdmissionResponse{Allowed: true, Warnings: []string{req.Name}}
		if len(req.Object.Raw) > 0 {
			r.Patch, r.PatchType = fmt.Appendf(nil, `[{"op":"add","path":"/data","value":{"name":%q}}]`, req.Name), new(admissionv1.PatchTypeJSONPatch)
		}
		return r
	})
	engine := c.connect(t, configured("many.example.com", map[string]http.Handler{
		"a.many.example.com": label, "v.many.example.com": responder(allow), "w.many.example.com": responder(allow),
	}, mutatingHook("a.many.example.com", rules), validatingHook("v.many.example.com", rules), validatingHook("w.many.example.com", rules)))
	const seed = 1
	r := rand.New(rand.NewPCG(seed, seed))
	var wg sync.WaitGroup
	for i := range 64 {
		req := Request{
			Operation: []admissionv1.Operation{admissionv1.Create, admissionv1.Update, admissionv1.Delete}[r.IntN(3)],
			Resource:  metav1.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Namespace: fmt.Sprintf("many-%d", r.IntN(3)), DryRun: r.IntN(2) == 0,
		}
		name := fmt.Sprintf("c%d", r.IntN(8))
		object := fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q}}`, name)
		if req.Operation != admissionv1.Delete {
			req.Object = object
		}
		if req.Operation != admissionv1.Create {
			req.OldObject = object
		}
		wg.Go(func() {
			result, err := engine.Admit(t.Context(), req)
			if err != nil || !result.Admitted() {
				t.Errorf("seed %d, request %d: %v %v", seed, i, err, result)
				return
			}
			var names []string
			for _, call := range result.Calls {
				names = append(names, call.Webhook+" "+valueAt(t, call.Request, "request", "name"))
			}
			want := []string{"a.many.example.com " + name, "v.many.example.com " + name, "w.many.example.com " + name}
			if diff := cmp.Diff(want, names); diff != "" || fmt.Sprint(result.Warnings) != "["+name+"]" {
				t.Errorf("seed %d, request %d: %s %v", seed, i, diff, result.Warnings)
			}
		})
	}
	wg.Wait()
}

func testClose(t *testing.T, c sharedServer) {
	w := configured("close.example.com", map[string]http.Handler{"a.close.example.com": responder(allow)}, mutatingHook("a.close.example.com", rulesFor("", "pods", "*")))
	engine, err := Connect(c.Config, w, ConnectOptions{CRDs: []*apiextensionsv1.CustomResourceDefinition{widgets(t, "close.example.com")}, Namespaces: map[string]map[string]string{"close": {"a": "b"}}})
	if err != nil {
		t.Fatal(err)
	}
	create := Request{Operation: admissionv1.Create, Resource: pods, Namespace: "nowhere", Object: podJSON("p", "")}
	if result := admit(t, engine, create); result.Admitted() || result.Rejection.Reason != metav1.StatusReasonNotFound {
		t.Error(result.Rejection)
	}
	for range 2 {
		if err := engine.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := engine.Admit(t.Context(), create); !errors.Is(err, errClosed) {
		t.Error(err)
	}
	c.expectNothing(t, engine.(*serverEngine).server.ID)
}

// expectNothing fails the test if the API server still has an object of the engine.
func (c sharedServer) expectNothing(t *testing.T, id string) {
	t.Helper()
	a, err := realserver.NewAPI(c.Config, inprocess.DefaultManager)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	for _, path := range []string{realserver.MutatingPath, realserver.ValidatingPath, realserver.CRDsPath, realserver.NamespacesPath} {
		var all realserver.List
		if err := a.Get(t.Context(), path, &all); err != nil {
			t.Fatal(err)
		}
		for _, item := range all.Items {
			if item.Metadata.Labels[realserver.EngineKey] == id || item.Metadata.Annotations[realserver.EngineKey] == id {
				t.Errorf("%s/%s is left", path, item.Metadata.Name)
			}
		}
	}
}

// testLeftBehind checks that Connect deletes the objects of an engine whose process was killed, and keeps the objects
// of a running engine.
func testLeftBehind(t *testing.T, c sharedServer) {
	w := configured("left.example.com", map[string]http.Handler{"a.left.example.com": responder(allow)}, mutatingHook("a.left.example.com", rulesFor("", "pods", "*")))
	killed, err := Connect(c.Config, w, ConnectOptions{CRDs: []*apiextensionsv1.CustomResourceDefinition{widgets(t, "left.example.com")}, Namespaces: map[string]map[string]string{"left": nil}})
	if err != nil {
		t.Fatal(err)
	}
	other := configured("alive.example.com", map[string]http.Handler{"a.alive.example.com": responder(allow)}, mutatingHook("a.alive.example.com", rulesFor("", "pods", "*")))
	alive := c.connect(t, other)
	if err := killed.(*serverEngine).server.Proxy.Close(); err != nil {
		t.Fatal(err)
	}
	c.connect(t, w)
	c.expectNothing(t, killed.(*serverEngine).server.ID)
	result := admit(t, alive, Request{Operation: admissionv1.Create, Resource: pods, Namespace: "alive", Object: podJSON("p", ""), DryRun: true})
	if len(result.Calls) != 1 {
		t.Error("a running engine was treated as dead")
	}
}

func testRefused(t *testing.T, c sharedServer) {
	before := c.count(t, realserver.MutatingPath)
	bad := mutatingHook("bad.example.com", rulesFor("", "pods", "*"))
	bad.MatchConditions = []admissionregistrationv1.MatchCondition{{Name: "bad", Expression: "object.("}}
	good := mutatingHook("good.example.com", rulesFor("", "pods", "*"))
	w := configured("a.example.com", map[string]http.Handler{"bad.example.com": responder(allow), "good.example.com": responder(allow)}, good)
	w.Mutating = append(w.Mutating, configured("b.example.com", nil, bad).Mutating...)
	if _, err := Connect(c.Config, w, ConnectOptions{}); err == nil || !strings.Contains(err.Error(), "compilation failed") {
		t.Error(err)
	}
	if after := c.count(t, realserver.MutatingPath); after != before {
		t.Errorf("%d configurations are left", after-before)
	}
}
