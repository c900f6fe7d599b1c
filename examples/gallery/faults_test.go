// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"flag"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/admitkit/admitkit/examples/gallery/podnodeselector"
	"github.com/admitkit/admitkit/examples/testcluster"
	"github.com/admitkit/admitkit/internal/apiserver"
	"github.com/admitkit/admitkit/internal/apiserver/need"
)

var cutFor = flag.Duration("cut", 3*time.Second, "how long TestAPIServerFaults cuts the watches of the caches")

// A faulty is the program with all hooks, behind a proxy that has faults.
type faulty struct {
	*running
	cluster *testcluster.Cluster
	proxy   *proxy
	cases   []faultCase
	answers map[string]string // of each hook, before the faults
}

// TestAPIServerFaults runs the program with all hooks of the gallery against an API server. The program has only the
// permissions that it prints with --print-rbac. The watches of its caches are cut, requests hang, and the API server is
// gone. The verdicts must be those of docs/gallery.md, every call must be answered, and the program must stay ready.
func TestAPIServerFaults(t *testing.T) {
	need.APIServer(t)
	klog.SetSlogLogger(slog.New(slog.DiscardHandler)) // the informers log each watch that ends
	t.Cleanup(klog.ClearLogger)
	f := newFaulty(t)
	f.baseline(t)

	f.proxy.inject(cut)
	eventually(t, "the metric shows that the watches are cut", func() bool { return f.cutWatches(t) == len(cachedResources) })
	f.change(t, "env=changed")
	createTeam(t, f.cluster, "team-new")
	f.watchesAreCut(t)
	f.proxy.inject(works)
	eventually(t, "the hooks see the change", func() bool {
		_, text := f.call(t, "set.podnodeselector.example.com", onPod()(t, "team-a"), 0)
		return text != f.answers["set.podnodeselector.example.com"]
	})
	eventually(t, "the watches are open again", func() bool { return f.cutWatches(t) == 0 })
	f.baseline(t)

	f.proxy.inject(hanging)
	f.serverFails(t, "hanging", "team-hanging")
	f.proxy.inject(gone)
	f.serverFails(t, "gone", "team-gone")
	f.proxy.inject(works)
	eventually(t, "the watches are open again", func() bool { return f.cutWatches(t) == 0 })
	f.baseline(t)
}

func newFaulty(t *testing.T) *faulty {
	t.Helper()
	cluster := faultCluster(t)
	args := []string{"--enable=" + strings.Join(slices.Sorted(maps.Keys(policies)), ",")}
	for name, content := range faultConfigurations(t) {
		args = append(args, "--config="+name+"="+write(t, content))
	}
	f := &faulty{cluster: cluster, proxy: newProxy(t, asServiceAccount(t, cluster, "all-policies", args)), cases: faultCases()}
	f.running = serve(t, &rest.Config{Host: f.proxy.URL}, args...)
	return f
}

// faultCluster starts an API server with the objects of team-a.
func faultCluster(t *testing.T) *testcluster.Cluster {
	t.Helper()
	cluster, err := testcluster.StartWith(context.WithoutCancel(t.Context()), apiserver.Options{
		// They would change or deny the objects that the hooks read.
		Flags: map[string][]string{"disable-admission-plugins": {"ServiceAccount", "PodSecurity", "LimitRanger"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Stop(); err != nil {
			t.Error(err)
		}
	})
	createShared(t, cluster)
	createTeam(t, cluster, "team-a")
	return cluster
}

// faultConfigurations maps each policy that needs a configuration file to the content of one for faultCases.
func faultConfigurations(t *testing.T) map[string]string {
	t.Helper()
	configurations := required(t)
	configurations["ImagePolicyWebhook"] = newImageService(t).configuration(t, false)
	configurations["EventRateLimit"] = "apiVersion: eventratelimit.admission.k8s.io/v1alpha1\nkind: Configuration\nlimits: [{type: Server, qps: 100000, burst: 100000}]\n"
	configurations["PodPreset"] = "[{apiVersion: settings.k8s.io/v1alpha1, kind: PodPreset, metadata: {namespace: team-a, name: a}, spec: {selector: {}, env: [{name: A, value: b}]}}]"
	return configurations
}

// baseline calls each hook without a fault, and records its answer.
func (f *faulty) baseline(t *testing.T) {
	t.Helper()
	f.answers = map[string]string{}
	for _, c := range f.cases {
		got, text := f.call(t, c.hook, c.request(t, "team-a"), 0)
		if got != c.verdict {
			t.Errorf("without a fault, %s %s, want %s: %s", c.hook, got, c.verdict, text)
		}
		f.answers[c.hook] = text
	}
	for hook := range f.hooks {
		if _, ok := f.answers[hook]; !ok && packageOf(hook) != "sidecarinjection" { // its hooks differ only in their selectors
			t.Errorf("there is no request for %s", hook)
		}
	}
}

// change gives team-a another node selector.
func (f *faulty) change(t *testing.T, selector string) {
	t.Helper()
	var namespace corev1.Namespace
	if err := f.cluster.Client.Get(t.Context(), client.ObjectKey{Name: "team-a"}, &namespace); err != nil {
		t.Fatal(err)
	}
	namespace.Annotations[podnodeselector.Annotation] = selector
	if err := f.cluster.Client.Update(t.Context(), &namespace); err != nil {
		t.Fatal(err)
	}
}

// cachedResources are the resources in the caches.
var cachedResources = []string{
	"namespaces", "limitranges", "serviceaccounts", "pods", "nodes", "persistentvolumeclaims", "persistentvolumes", "runtimeclasses.node.k8s.io",
	"storageclasses.storage.k8s.io", "csidrivers.storage.k8s.io", "ingressclasses.networking.k8s.io", "ingresses.networking.k8s.io", "priorityclasses.scheduling.k8s.io",
}

// cutWatches returns the number of resources whose watch is cut, by the metric.
func (f *faulty) cutWatches(t *testing.T) (n int) {
	t.Helper()
	for _, resource := range cachedResources {
		n += int(f.metric(t, `admitkit_watch_cut{resource="`+resource+`"}`))
	}
	return n
}

// asBefore calls the hooks that the fault must not change. Their answers must not change either.
func (f *faulty) asBefore(t *testing.T, during string, changed ...string) {
	t.Helper()
	for _, c := range f.cases {
		if slices.Contains(changed, c.reads) {
			continue
		}
		if got, text := f.call(t, c.hook, c.request(t, "team-a"), 0); text != f.answers[c.hook] {
			t.Errorf("%s: %s %s: %s\nbefore: %s", during, c.hook, got, text, f.answers[c.hook])
		}
	}
	if !f.ready() {
		t.Errorf("%s: the program is not ready", during)
	}
}

// watchesAreCut checks the verdicts while the watches are cut. Objects that changed are read as they were. New objects
// are read from the API server, except by hooks that read only a cache.
func (f *faulty) watchesAreCut(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), *cutFor)
	defer cancel()
	next := time.NewTicker(100 * time.Millisecond)
	defer next.Stop()
	const during = "while the watches are cut"
	rounds := 0
	for more := true; more && !t.Failed(); rounds++ {
		f.asBefore(t, during)
		for _, c := range f.cases {
			want := c.verdict
			if c.hook == "set.priority.example.com" {
				want = denies // it does not find the class of the new team
			}
			if got, text := f.call(t, c.hook, c.request(t, "team-new"), 0); got != want {
				t.Errorf("%s, for new objects, %s %s, want %s: %s", during, c.hook, got, want, text)
			}
		}
		select {
		case <-next.C:
		case <-ctx.Done():
			more = false
		}
	}
	var stale float64
	for _, resource := range []string{"namespaces", "limitranges", "serviceaccounts", "pods", "runtimeclasses"} {
		got := f.metric(t, `admitkit_reads_total{resource="`+resource+`",source="stale"}`)
		if got == 0 {
			t.Errorf("no stale read of %s is counted", resource)
		}
		stale += got
	}
	t.Logf("%d rounds of calls in %v; %v stale reads", rounds, *cutFor, stale)
}

// serverFails checks the verdicts while the API server answers nothing. Nothing is known of the team. Hooks that must
// ask the API server fail.
func (f *faulty) serverFails(t *testing.T, during, team string) {
	t.Helper()
	f.asBefore(t, during, server)
	var all sync.WaitGroup
	for _, c := range f.cases {
		if c.reads != orServer && c.reads != server {
			continue
		}
		request := c.request(t, team)
		all.Go(func() {
			if got, text := f.call(t, c.hook, request, 0); got != fails {
				t.Errorf("%s: %s %s, want %s: %s", during, c.hook, got, fails, text)
			}
		})
	}
	all.Wait()
	if !f.ready() {
		t.Errorf("%s: the program is not ready", during)
	}
}
