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
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/internal/apiserver"
	"github.com/admitkit/admitkit/internal/cli/objects"
)

// Each world is a set of configurations that is registered at once, with many requests.
const (
	worlds   = 5
	perWorld = 60
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
  - &version
    name: v1
    served: true
    storage: true
    subresources: {status: {}, scale: {specReplicasPath: .spec.size, statusReplicasPath: .status.size}}
    schema: &schema
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {size: {type: integer, default: 3}}, default: {}}
          status: {type: object, properties: {size: {type: integer}}}
  - {name: v1beta1, served: true, storage: false, subresources: {status: {}}, schema: *schema}
  - {name: v1alpha1, served: false, storage: false, schema: *schema}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: planets.explain.example.com}
spec:
  group: explain.example.com
  scope: Cluster
  names: {plural: planets, singular: planet, kind: Planet, listKind: PlanetList}
  versions: [{name: v1, served: true, storage: true, schema: *schema}]
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

// A rig is a real API server, and a server of webhooks that notes who is called.
type rig struct {
	config *rest.Config
	client *http.Client
	hooks  *httptest.Server

	mu    sync.Mutex
	calls map[string][]call // by the id of the request
}

// A call is one that came to the server of webhooks.
type call struct {
	Webhook, Kind string
}

func newRig(t *testing.T) *rig {
	t.Helper()
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	server, err := apiserver.Start(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
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

// ServeHTTP allows everything, and notes what was asked by the webhook's name, its path.
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

// do sends a request as a user, who has an id that webhooks are told.
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

// must sends a request of the test's own, and decodes the answer.
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
	all, err := objects.Read([]string{"-"}, strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// makeEnvironment makes what requests need.
func (r *rig) makeEnvironment(t *testing.T) {
	t.Helper()
	paths := map[string]string{"Namespace": "/api/v1/namespaces", "CustomResourceDefinition": "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
		"ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles", "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"}
	for _, o := range read(t, environment+"---"+strings.ReplaceAll(definitions, "*schema", sharedSchema)+"---"+permissions) {
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

// register replaces all configurations, and waits until the API server calls the new ones: markers
// are the last that it hears of.
func (r *rig) register(t *testing.T, world int, mutating []*admissionregistrationv1.MutatingWebhookConfiguration, validating []*admissionregistrationv1.ValidatingWebhookConfiguration) {
	t.Helper()
	const mutatingPath, validatingPath = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations", "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
	r.must(t, http.MethodDelete, mutatingPath, nil)
	r.must(t, http.MethodDelete, validatingPath, nil)
	client := func(name string) admissionregistrationv1.WebhookClientConfig {
		return admissionregistrationv1.WebhookClientConfig{URL: ptr.To(r.hooks.URL + "/" + name),
			CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: r.hooks.Certificate().Raw})}
	}
	marker := fmt.Sprintf("marker-%d", world)
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

// send makes the request of a case.
func (r *rig) send(ctx context.Context, c *generated) (code int, answer []byte, err error) {
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

// TestAgreesWithServer: what is told of generated requests is what a real API server does.
func TestAgreesWithServer(t *testing.T) {
	seed, n := uint64(1), perWorld
	if text := os.Getenv("ADMITKIT_EXPLAIN_SEED"); text != "" {
		seed, _ = strconv.ParseUint(text, 10, 64)
	}
	if text := os.Getenv("ADMITKIT_EXPLAIN_CASES"); text != "" { // in each world
		n, _ = strconv.Atoi(text)
	}
	t.Logf("seed %d, %d worlds of %d requests; ADMITKIT_EXPLAIN_SEED and ADMITKIT_EXPLAIN_CASES choose others", seed, worlds, n)
	r := newRig(t)
	r.makeEnvironment(t)
	var requests [worlds][]*generated
	g := newGenerator(seed)
	for world := range worlds {
		for i := range n {
			c := g.request(world*n + i)
			requests[world] = append(requests[world], c)
			if c.stored != nil {
				c.stored = r.must(t, http.MethodPost, c.path("", ""), c.stored)
				c.update(t, r)
			}
		}
	}
	var counts tally
	for world := range worlds {
		g := newGenerator(seed*1000 + uint64(world))
		mutating, validating := g.configurations()
		r.register(t, world, mutating, validating)
		known := r.world(t, mutating, validating)
		var wg sync.WaitGroup
		work := make(chan *generated)
		for range 4 {
			wg.Go(func() {
				for c := range work {
					r.compare(t, known, c, &counts)
				}
			})
		}
		for _, c := range requests[world] {
			work <- c
		}
		close(work)
		wg.Wait()
	}
	counts.report(t, seed == 1 && n == perWorld)
}

// update makes the new object of an update, which keeps the version of the stored one.
func (c *generated) update(t *testing.T, r *rig) {
	t.Helper()
	if c.operation != "UPDATE" {
		return
	}
	if c.sub == "scale" {
		c.object = r.must(t, http.MethodGet, c.path(c.name, "scale"), nil)
		return
	}
	if c.object["spec"] != nil {
		c.object["spec"] = c.stored["spec"]
	}
	metadata, stored := c.object["metadata"].(map[string]any), c.stored["metadata"].(map[string]any)
	metadata["resourceVersion"], metadata["uid"] = stored["resourceVersion"], stored["uid"]
}

// world is what a user gives: the configurations, the definitions, the namespaces, and an authorizer
// that asks the API server.
func (r *rig) world(t *testing.T, mutating []*admissionregistrationv1.MutatingWebhookConfiguration, validating []*admissionregistrationv1.ValidatingWebhookConfiguration) *World {
	t.Helper()
	var text strings.Builder
	for _, c := range mutating {
		for i := range c.Webhooks {
			c.Webhooks[i].ClientConfig.URL = ptr.To("https://hooks.example.com/")
		}
		c.TypeMeta = metav1.TypeMeta{APIVersion: "admissionregistration.k8s.io/v1", Kind: "MutatingWebhookConfiguration"}
		fmt.Fprintf(&text, "---\n%s\n", encode(c))
	}
	for _, c := range validating {
		for i := range c.Webhooks {
			c.Webhooks[i].ClientConfig.URL = ptr.To("https://hooks.example.com/")
		}
		c.TypeMeta = metav1.TypeMeta{APIVersion: "admissionregistration.k8s.io/v1", Kind: "ValidatingWebhookConfiguration"}
		fmt.Fprintf(&text, "---\n%s\n", encode(c))
	}
	w, err := FromFiles(read(t, text.String()), read(t, environment+"---"+strings.ReplaceAll(definitions, "*schema", sharedSchema)))
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(r.config)
	if err != nil {
		t.Fatal(err)
	}
	w.authorizer = authorizer.AuthorizerFunc((&live{r.config, client}).authorize)
	return w
}

// explained tells of a case as the command does.
func (w *World) explained(t *testing.T, c *generated) (*Object, error) {
	ask := Ask{Operation: c.operation, SubResource: c.sub, User: &c.user, DryRun: c.dryRun}
	given := c.object
	switch {
	case c.operation == "CONNECT":
		kind := subresourceOf[c.sub].kind.Kind
		given = map[string]any{"apiVersion": "v1", "kind": kind}
		if c.sub == "exec" {
			given["command"] = []any{"ls"}
		}
		ask.Namespace, ask.Name = c.namespace, c.name
	case c.operation == "DELETE" || c.sub == "eviction":
		given = c.stored
	case c.sub == "scale":
		given = c.stored // its Scale is made of it
	}
	if c.operation == "UPDATE" && c.sub != "scale" {
		ask.Old = read(t, string(encode(c.stored)))
	}
	report, err := w.Explain(t.Context(), read(t, string(encode(given))), ask)
	if err != nil {
		return nil, err
	}
	return &report.Objects[0], nil
}

// compare sends a request, and compares who was called with what is told.
func (r *rig) compare(t *testing.T, w *World, c *generated, counts *tally) {
	told, err := w.explained(t, c)
	if err != nil || told.Error != "" {
		t.Errorf("%s: %v %+v", c.id, err, told)
		return
	}
	code, answer, err := r.send(t.Context(), c)
	if err != nil {
		t.Errorf("%s: %v", c.id, err)
		return
	}
	type seen struct {
		Mutating   []string // in order
		Validating []string
		Rejected   bool
	}
	var want, got seen
	sent := map[string]string{}
	for _, k := range r.called(c.id) {
		if before, again := sent[k.Webhook]; again && before == k.Kind {
			continue // in the second step of a deletion
		}
		sent[k.Webhook] = k.Kind
		if strings.HasPrefix(k.Webhook, "m") {
			want.Mutating = append(want.Mutating, k.Webhook+" as "+k.Kind)
		} else {
			want.Validating = append(want.Validating, k.Webhook+" as "+k.Kind)
		}
	}
	unknown := map[string]bool{}
	for _, h := range told.Webhooks {
		counts.add(h.Type + " " + string(h.Called) + " by " + h.Decision)
		switch {
		case h.Called == Unknown:
			unknown[h.Name] = true
		case h.Called == No:
		case h.Type == "mutating":
			got.Mutating = append(got.Mutating, h.Name+" as "+kindOf(h.SentAs))
		default:
			got.Validating = append(got.Validating, h.Name+" as "+kindOf(h.SentAs))
		}
	}
	for _, list := range []*[]string{&want.Mutating, &want.Validating} {
		*list = slices.DeleteFunc(*list, func(s string) bool { name, _, _ := strings.Cut(s, " "); return unknown[name] })
	}
	slices.Sort(want.Validating)
	slices.Sort(got.Validating)
	want.Rejected, got.Rejected = code >= 400 && c.operation != "CONNECT", told.Rejection != nil && c.operation != "CONNECT"
	if len(unknown) > 0 && want.Rejected {
		return // it may be that what is unknown rejects it
	}
	if got.Rejected && int(told.Rejection.Code) != code {
		t.Errorf("%s: rejected with %d, told was %+v", c.id, code, told.Rejection)
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%s, %s of %s %s/%s: the API server (-) and what is told (+):\n%s%d %.600s\n%s\nstored %s\nobject %s", c.id, c.operation, c.gv(), c.resource, c.sub, diff, code, answer,
			encode(told), encode(c.stored), encode(c.object))
	}
	if told.Rejection != nil {
		counts.add("rejected before " + told.Rejection.Before)
	}
	counts.add(fmt.Sprintf("%d mutating and %d validating calls", min(2, len(want.Mutating)), min(2, len(want.Validating))))
	counts.pair(c, len(unknown) > 0)
}

// A tally counts what the pairs covered.
type tally struct {
	mu      sync.Mutex
	pairs   int
	unknown int
	seen    map[string]int
}

func (c *tally) add(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen == nil {
		c.seen = map[string]int{}
	}
	c.seen[what]++
}

func (c *tally) pair(g *generated, unknown bool) {
	what := g.operation + " " + g.resource
	if g.sub != "" {
		what += "/" + g.sub
	}
	c.add(what)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pairs++
	if unknown {
		c.unknown++
	}
}

// covered is what the pairs must have.
var covered = []string{
	"CREATE pods", "UPDATE pods", "DELETE pods", "CONNECT pods/exec", "CREATE pods/eviction", "UPDATE pods/status", "UPDATE deployments/scale", "UPDATE widgets/status",
	"CREATE widgets", "UPDATE widgets", "DELETE widgets", "CREATE planets", "CREATE namespaces", "UPDATE namespaces", "DELETE namespaces",
	"mutating yes by Matches", "mutating no by NamespaceSelector", "mutating no by ObjectSelector", "mutating no by Rules", "mutating no by MatchCondition", "mutating no by Rejection",
	"validating yes by Matches", "validating no by MatchCondition", "validating no by Rejection", "mutating no by Resource",
	"rejected before validating webhooks", "rejected before storage", "2 mutating and 2 validating calls", "CREATE events", "CREATE selfsubjectaccessreviews",
}

func (c *tally) report(t *testing.T, enforce bool) {
	t.Helper()
	t.Logf("%d pairs, %d of them with a webhook of which could not be told; %v", c.pairs, c.unknown, c.seen)
	if !enforce {
		return // other seeds need not cover everything
	}
	if c.pairs < 200 || c.unknown*10 > c.pairs {
		t.Errorf("%d pairs, of which %d have something unknown", c.pairs, c.unknown)
	}
	for _, what := range covered {
		if c.seen[what] == 0 {
			t.Errorf("no pair has: %s", what)
		}
	}
}

// sharedSchema stands for an alias of YAML that does not reach into another document.
const sharedSchema = `{openAPIV3Schema: {type: object, properties: {spec: {type: object, default: {}, properties: {size: {type: integer, default: 3}}}, status: {type: object, properties: {size: {type: integer}}}}}}`
