// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
)

// Each world is a set of configurations that is registered at once, with many requests.
const (
	worlds   = 5
	perWorld = 60
)

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
	if c.object["spec"] != nil && (c.resource != "pods" || len(c.id)%2 == 0) { // else as somebody writes it
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
	w, err := FromFiles(read(t, text.String()), read(t, environment+"---"+widgets()))
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
