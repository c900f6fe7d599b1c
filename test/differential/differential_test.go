// SPDX-License-Identifier: Apache-2.0

// Package differential compares the two engines of pkg/chain. The in-process engine must behave
// like a real API server.
package differential

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/klog/v2"
	"sigs.k8s.io/yaml"

	"github.com/admitkit/admitkit/internal/apiserver"
	"github.com/admitkit/admitkit/internal/apiserver/apiservertest"
	"github.com/admitkit/admitkit/internal/k8svalidation"
	"github.com/admitkit/admitkit/pkg/chain"
)

// enough is a number of cases that reaches every limit and every count in covered.
const enough = 400

// Each case has its own seed, and the seeds are consecutive.
var (
	firstSeed = flag.Uint64("diff.seed", 1, "the seed of the first case")
	cases     = flag.Int("diff.cases", enough, "how many cases to run")
)

const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Request
  verbs: [create, update, delete, get]
`

// notModelled are the plugins of the API server that change or reject objects. They are disabled,
// because the tests compare only the chain of webhooks and the steps around it.
const notModelled = "DefaultTolerationSeconds,Priority,LimitRanger,ServiceAccount,PodSecurity,ResourceQuota,RuntimeClass,StorageObjectInUseProtection,TaintNodesByCondition"

const widgets = `
metadata: {name: widgets.diff.example.com}
spec:
  group: diff.example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: &subresources {status: {}}
    schema: &schema
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            x-kubernetes-validations:
            - rule: "self.color != 'red' || self.size < 9"
              message: red ones are small
            properties:
              color: {type: string, enum: [red, blue, green]}
              size: {type: integer, default: 3, maximum: 10}
              free: {type: object, x-kubernetes-preserve-unknown-fields: true}
              parts:
                type: array
                items: {type: object, properties: {name: {type: string}, weight: {type: integer, default: 1}}}
          status: {type: object, properties: {phase: {type: string}}}
  - name: v1alpha1
    served: true
    storage: false
    subresources: *subresources
    schema: *schema
`

func startServer(t *testing.T, plugins ...string) (server *apiserver.Server, auditLog string) {
	t.Helper()
	dir := t.TempDir()
	policy := filepath.Join(dir, "policy.yaml")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		t.Fatal(err)
	}
	auditLog = filepath.Join(dir, "audit.log")
	flags := map[string][]string{
		"audit-policy-file": {policy}, "audit-log-path": {auditLog}, "audit-log-mode": {"blocking"}, "watch-cache": {"true"},
		"disable-admission-plugins": {notModelled},
	}
	if len(plugins) > 0 {
		flags["enable-admission-plugins"] = plugins
	}
	return apiservertest.Start(t, flags), auditLog
}

// quiet silences the API server's logs about calls that fail on purpose.
func quiet() {
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	utilruntime.ErrorHandlers = nil
}

// builtIns returns options that make the in-process engine default and validate built-in types.
func builtIns() chain.Options {
	return chain.Options{
		Default: func(obj runtime.Object) { k8svalidation.Default(obj) },
		Validate: func(obj, old runtime.Object) field.ErrorList {
			if old != nil {
				return k8svalidation.ValidateUpdate(obj, old)
			}
			return k8svalidation.Validate(obj)
		},
	}
}

func engines(t *testing.T) (process, server chain.Engine) {
	t.Helper()
	quiet()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict([]byte(widgets), crd); err != nil {
		t.Fatal(err)
	}
	namespaces := map[string]map[string]string{plain: nil, special: {"team": "special"}}
	crds := []*apiextensionsv1.CustomResourceDefinition{crd}
	options := builtIns()
	options.Namespaces, options.CRDs = namespaces, crds
	process, err := chain.New(webhooks(), options)
	if err != nil {
		t.Fatal(err)
	}
	apiServer, auditLog := startServer(t)
	server, err = chain.Connect(apiServer.Config, webhooks(), chain.ConnectOptions{Namespaces: namespaces, CRDs: crds, AuditLog: auditLog})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, engine := range []chain.Engine{process, server} {
			if err := engine.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	return process, server
}

// TestEngines runs each case in both engines. It fails for every difference that is not a declared limit. It also fails
// for every limit that no case needs.
func TestEngines(t *testing.T) {
	process, server := engines(t)
	seeds := make(chan uint64)
	var wg sync.WaitGroup
	var counts tally
	for range 4 {
		wg.Go(func() {
			for seed := range seeds {
				runCase(t, newCase(seed), process, server, &counts)
			}
		})
	}
	for i := range uint64(*cases) {
		seeds <- *firstSeed + i
	}
	close(seeds)
	wg.Wait()
	counts.report(t)
}

// once repeats a request until the API server handles it in one attempt. The API server makes another attempt if its
// cached object is outdated.
func once(ctx context.Context, server chain.Engine, c testCase) (*chain.Result, error) {
	steps := 1
	if c.kind == "pods" && c.request.Operation == admissionv1.Delete && !c.request.DryRun {
		steps = 2
	}
	for attempt := 0; ; attempt++ {
		r, err := server.Admit(ctx, c.request)
		if err != nil || r.Passes <= steps || attempt == 20 {
			return r, err
		}
	}
}

func runCase(t *testing.T, c testCase, process, server chain.Engine, counts *tally) {
	there, err := once(t.Context(), server, c)
	if err != nil {
		t.Errorf("%v\nserver: %v", c, err)
		return
	}
	here, err := process.Admit(t.Context(), asStored(t, c.request, there))
	if err != nil {
		t.Errorf("%v\nin process: %v", c, err)
		return
	}
	counts.count(c, there)
	var undeclared []string
	for _, d := range compare(viewOf(here), viewOf(there)) {
		if !counts.declared(c, d) {
			undeclared = append(undeclared, d.String())
		}
	}
	if len(undeclared) > 0 {
		t.Errorf("%v\n%s", c, strings.Join(undeclared, "\n"))
	}
}

// asStored replaces the old object of a request with the stored object, including uid and managedFields, so that both
// engines start from the same object. It takes the stored object, and its resourceVersion, from a webhook call of the
// first engine. If no webhook was called, it returns the request unchanged.
func asStored(t *testing.T, req chain.Request, r *chain.Result) chain.Request {
	stored := shown(r)
	if req.OldObject == nil || stored == nil {
		return req
	}
	var given, old map[string]any
	if err := errors.Join(json.Unmarshal(req.OldObject, &given), json.Unmarshal(stored, &old)); err != nil {
		t.Error(err)
		return req
	}
	old["apiVersion"] = given["apiVersion"] // all versions of widgets have the same fields
	req.OldObject = encode(old)
	if req.Object != nil {
		var object map[string]any
		if err := json.Unmarshal(req.Object, &object); err != nil {
			t.Error(err)
			return req
		}
		version := old["metadata"].(map[string]any)["resourceVersion"]
		object["metadata"].(map[string]any)["resourceVersion"] = version
		req.Object = encode(object)
	}
	return req
}

// shown returns the old object that a webhook received, preferably one that was not converted.
func shown(r *chain.Result) (object []byte) {
	for _, call := range r.Calls {
		var review struct {
			Request struct {
				Kind        metav1.GroupVersionKind `json:"kind"`
				RequestKind metav1.GroupVersionKind `json:"requestKind"`
				OldObject   json.RawMessage         `json:"oldObject"`
			} `json:"request"`
		}
		if json.Unmarshal(call.Request, &review) != nil {
			continue
		}
		if review.Request.Kind == review.Request.RequestKind {
			return review.Request.OldObject
		}
		object = review.Request.OldObject
	}
	return object
}

// A tally counts how often the cases reached each entry of covered, and each limit.
type tally struct {
	mu   sync.Mutex
	used map[string]int
	seen map[string]int
}

// covered lists the counts that the cases must reach.
var covered = []string{
	"CONNECT pods/exec", "CREATE pods", "CREATE widgets", "CREATE namespaces", "UPDATE pods", "UPDATE widgets", "DELETE pods", "DELETE widgets",
	"admitted true", "admitted false", "call Allowed mutating=true round 1", "call Failed mutating=true round 1", "call Denied mutating=true round 0",
	"call Denied mutating=false round 0", "call FailedOpen mutating=true round 0", "call FailedOpen mutating=false round 0", "call Failed mutating=false round 0",
}

func (c *tally) count(t testCase, r *chain.Result) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen == nil {
		c.seen = map[string]int{}
	}
	c.seen[string(t.request.Operation)+" "+t.kind]++
	c.seen[fmt.Sprintf("admitted %t", r.Admitted())]++
	for _, call := range r.Calls {
		c.seen[fmt.Sprintf("call %s mutating=%t round %d", call.Effect, call.Mutating, call.Round)]++
	}
}

func (c *tally) report(t *testing.T) {
	t.Helper()
	t.Logf("covered: %v", c.seen)
	for _, what := range covered {
		if c.seen[what] == 0 && *cases >= enough {
			t.Errorf("no case has: %s", what)
		}
	}
	for _, l := range limits {
		if c.used[l.name] == 0 && *cases >= enough && *firstSeed == 1 { // other seeds may not reach it
			t.Errorf("no case needs the declared limit %q: remove it from the list", l.name)
		}
		t.Logf("limit %q: %d differences", l.name, c.used[l.name])
	}
}
