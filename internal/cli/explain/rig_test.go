// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/internal/apiserver/apiservertest"
	"github.com/admitkit/admitkit/internal/cli/objects"
	"github.com/admitkit/admitkit/internal/cli/screen"
)

const definitions = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.explain.example.com}
spec:
  group: explain.example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}, scale: {specReplicasPath: .spec.size, statusReplicasPath: .status.size}}
    schema: SCHEMA
  - {name: v1beta1, served: true, storage: false, subresources: {status: {}}, schema: SCHEMA}
  - {name: v1alpha1, served: false, storage: false, schema: SCHEMA}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: planets.explain.example.com}
spec:
  group: explain.example.com
  scope: Cluster
  names: {plural: planets, singular: planet, kind: Planet, listKind: PlanetList}
  versions: [{name: v1, served: true, storage: true, schema: SCHEMA}]
`

const environment = `
{apiVersion: v1, kind: Namespace, metadata: {name: plain}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: team-a, labels: {team: a}}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: team-b, labels: {team: b}}}
`

const permissions = `
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: jane}, rules: [{apiGroups: ["*"], resources: ["*"], verbs: [create, update, delete, get]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: breakglass}, rules: [{apiGroups: ["*"], resources: ["*"], verbs: [breakglass]}]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: jane}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: jane}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: jane}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: breakglass}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: breakglass}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: developers}]
`

// A rig is a real API server and a webhook server that records calls.
type rig struct {
	config *rest.Config
	client *http.Client
	hooks  *httptest.Server

	mu    sync.Mutex
	calls map[string][]call // by the id of the request
}

// A call is a call that the webhook server received.
type call struct {
	Webhook, Kind string
}

func newRig(t *testing.T) *rig {
	t.Helper()
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	server := apiservertest.Start(t, nil)
	r := &rig{config: server.Config, calls: map[string][]call{}}
	r.config.QPS = -1
	transport, err := rest.TransportFor(r.config)
	if err != nil {
		t.Fatal(err)
	}
	r.client = &http.Client{Transport: transport}
	r.hooks = httptest.NewUnstartedServer(r)
	r.hooks.Config.ErrorLog = log.New(io.Discard, "", 0)
	r.hooks.StartTLS()
	t.Cleanup(r.hooks.Close)
	return r
}

// ServeHTTP allows every request and records the call. The path of the request is the name of the webhook.
func (r *rig) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(req.Body).Decode(&review); err != nil || review.Request == nil {
		http.Error(w, "no review", http.StatusBadRequest)
		return
	}
	if id := review.Request.UserInfo.Extra["case"]; len(id) == 1 {
		kind := schema.GroupVersionKind(review.Request.Kind)
		r.mu.Lock()
		r.calls[id[0]] = append(r.calls[id[0]], call{strings.TrimPrefix(req.URL.Path, "/"), kind.GroupVersion().String() + " " + kind.Kind})
		r.mu.Unlock()
	}
	review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
	review.Request = nil
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(review)
}

func (r *rig) called(id string) []call {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.calls[id])
}

// do sends a request as a user. Webhooks receive id in the user's extra fields.
func (r *rig) do(ctx context.Context, method, path string, body any, user *User, id string) (code int, answer []byte, err error) {
	var reader io.Reader
	if body != nil {
		reader = bytes.NewReader(encode(body))
	}
	req, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(r.config.Host, "/")+path, reader)
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	if user != nil {
		req.Header.Set("Impersonate-User", user.Name)
		req.Header["Impersonate-Group"] = user.Groups
		req.Header.Set("Impersonate-Extra-Case", id)
	}
	response, err := r.client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = response.Body.Close() }()
	answer, err = io.ReadAll(response.Body)
	return response.StatusCode, answer, err
}

// must sends a request that must succeed, and decodes the response.
func (r *rig) must(t *testing.T, method, path string, body any) map[string]any {
	t.Helper()
	code, answer, err := r.do(t.Context(), method, path, body, nil, "")
	if err != nil || code >= 300 {
		t.Fatalf("%s %s: %d %v %s", method, path, code, err, answer)
	}
	var o map[string]any
	if err := json.Unmarshal(answer, &o); err != nil {
		t.Fatal(err)
	}
	return o
}

func read(t *testing.T, text string) []*objects.Object {
	t.Helper()
	all, err := objects.Read(t.Context(), []string{"-"}, strings.NewReader(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// makeEnvironment creates the objects that requests need.
func (r *rig) makeEnvironment(t *testing.T) {
	t.Helper()
	paths := map[string]string{"Namespace": "/api/v1/namespaces", "CustomResourceDefinition": "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
		"ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles", "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"}
	for _, o := range read(t, environment+"---"+widgets()+"---"+permissions) {
		r.must(t, http.MethodPost, paths[o.GVK.Kind], json.RawMessage(o.JSON))
	}
	for _, path := range []string{"v1/widgets", "v1beta1/widgets", "v1/planets"} {
		err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
			code, _, err := r.do(ctx, http.MethodGet, "/apis/explain.example.com/"+path, nil, nil, "")
			return code == http.StatusOK, err
		})
		if err != nil {
			t.Fatal(path, err)
		}
	}
}

// register replaces all configurations and waits until the API server calls the new ones. It creates two marker
// webhooks last. When the API server calls the marker webhooks, it has the other configurations as well.
func (r *rig) register(t *testing.T, round int, mutating []*admissionregistrationv1.MutatingWebhookConfiguration, validating []*admissionregistrationv1.ValidatingWebhookConfiguration) {
	t.Helper()
	const mutatingPath, validatingPath = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations", "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
	r.must(t, http.MethodDelete, mutatingPath, nil)
	r.must(t, http.MethodDelete, validatingPath, nil)
	client := func(name string) admissionregistrationv1.WebhookClientConfig {
		return admissionregistrationv1.WebhookClientConfig{URL: ptr.To(r.hooks.URL + "/" + name),
			CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: r.hooks.Certificate().Raw})}
	}
	marker := fmt.Sprintf("marker-%d", round)
	rules := []admissionregistrationv1.RuleWithOperations{{Operations: []admissionregistrationv1.OperationType{"CREATE"},
		Rule: admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}}}}
	only := []admissionregistrationv1.MatchCondition{{Name: "marker", Expression: fmt.Sprintf(`has(request.userInfo.extra) && "case" in request.userInfo.extra && request.userInfo.extra["case"][0] == %q`, marker)}}
	for _, c := range append(slices.Clone(mutating), &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "0-marker"},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{Name: "m.marker.example.com", Rules: rules, MatchConditions: only,
			SideEffects: ptr.To(admissionregistrationv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"}}}}) {
		c = c.DeepCopy()
		for i := range c.Webhooks {
			c.Webhooks[i].ClientConfig = client(c.Webhooks[i].Name)
		}
		r.must(t, http.MethodPost, mutatingPath, c)
	}
	for _, c := range append(slices.Clone(validating), &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "0-marker"},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{Name: "v.marker.example.com", Rules: rules, MatchConditions: only,
			SideEffects: ptr.To(admissionregistrationv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"}}}}) {
		c = c.DeepCopy()
		for i := range c.Webhooks {
			c.Webhooks[i].ClientConfig = client(c.Webhooks[i].Name)
		}
		r.must(t, http.MethodPost, validatingPath, c)
	}
	probe := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "probe",
		"labels": map[string]any{"color": "red"}, "annotations": map[string]any{"sure": "yes"}}}
	user := &User{Name: "root", Groups: []string{"system:masters"}}
	var answer []byte
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 20*time.Second, true, func(ctx context.Context) (bool, error) {
		var err error
		_, answer, err = r.do(ctx, http.MethodPost, "/api/v1/namespaces/default/configmaps?dryRun=All", probe, user, marker)
		seen := r.called(marker)
		return slices.ContainsFunc(seen, func(c call) bool { return c.Webhook == "m.marker.example.com" }) &&
			slices.ContainsFunc(seen, func(c call) bool { return c.Webhook == "v.marker.example.com" }), err
	})
	if err != nil {
		t.Fatalf("the configurations are not called: %v, %s", err, answer)
	}
}

// send sends a generated request to the API server, and returns the response.
func (r *rig) send(ctx context.Context, c *randomRequest) (code int, answer []byte, err error) {
	query := url.Values{}
	if c.dryRun {
		query.Set("dryRun", "All")
	}
	method, path, body := http.MethodPost, c.path("", ""), any(c.object)
	switch {
	case c.operation == "CONNECT":
		path, body = c.path(c.name, c.sub), nil
		if c.sub == "exec" {
			query.Set("command", "ls")
		}
		if c.sub == "portforward" {
			query.Set("ports", "80")
		}
	case c.sub == "eviction":
		path, body = c.path(c.name, c.sub), map[string]any{"apiVersion": "policy/v1", "kind": "Eviction", "metadata": map[string]any{"name": c.name, "namespace": c.namespace}}
	case c.operation == "UPDATE":
		method, path = http.MethodPut, c.path(c.name, c.sub)
	case c.operation == "DELETE":
		method, path, body = http.MethodDelete, c.path(c.name, ""), nil
	}
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	return r.do(ctx, method, path, body, &c.user, c.id)
}

// sharedSchema replaces SCHEMA in all definitions.
const sharedSchema = `{openAPIV3Schema: {type: object, properties: {spec: {type: object, default: {}, properties: {size: {type: integer, default: 3}}}, status: {type: object, properties: {size: {type: integer}}}}}}`

// widgets returns the custom resource definitions for the tests as YAML.
func widgets() string { return strings.ReplaceAll(definitions, "SCHEMA", sharedSchema) }

var painter = screen.Painter{}

// change answers an AdmissionReview: it allows the object and adds the label if it is missing.
func change(w http.ResponseWriter, req *http.Request, label string) {
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(req.Body).Decode(&review); err != nil || review.Request == nil {
		http.Error(w, "no review", http.StatusBadRequest)
		return
	}
	review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
	if label != "" && !bytes.Contains(review.Request.Object.Raw, []byte(strconv.Quote(label))) {
		review.Response.Patch, review.Response.PatchType = []byte(`[{"op":"add","path":"/metadata/labels/`+label+`","value":"yes"}]`), ptr.To(admissionv1.PatchTypeJSONPatch)
	}
	review.Request = nil
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(review)
}
