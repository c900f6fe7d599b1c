// SPDX-License-Identifier: Apache-2.0

package gallery

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/admitkit/admitkit/examples/testcluster"
	"github.com/admitkit/admitkit/internal/apiserver"
	"github.com/admitkit/admitkit/internal/apiserver/need"
)

// serverRequests is the number of generated requests for each admission controller and API server.
const serverRequests = 150

// notCompared are plugins that neither API server runs. ServiceAccount needs objects that a controller creates.
var notCompared = []string{"ServiceAccount"}

// TestOnTheServer sends requests to two API servers: one runs the original, the other one calls the hooks. The answers
// and the stored objects must be equal. A third pass, without original and hooks, shows that the requests depend on them.
func TestOnTheServer(t *testing.T) {
	need.APIServer(t)
	all := controllers()
	plain := startServer(t, all, nil)
	for _, c := range all {
		t.Run(c.name, func(t *testing.T) { compareServers(t, c, startServer(t, all, c), plain) })
	}
}

// A server is an API server with its clients.
type server struct {
	*testcluster.Cluster
	dynamic    dynamic.Interface
	typed      kubernetes.Interface
	namespaces []*corev1.Namespace // those that exist
}

// startServer starts an API server that runs one of the admission controllers, or none of them.
func startServer(t *testing.T, all []*controller, with *controller) *server {
	t.Helper()
	var disabled []string
	for _, c := range all {
		if c != with {
			disabled = append(disabled, c.name)
		}
	}
	o := apiserver.Options{
		Flags: map[string][]string{"disable-admission-plugins": append(disabled, notCompared...), "service-cluster-ip-range": {"10.0.0.0/16"}},
		Files: map[string][]byte{},
	}
	if with != nil {
		o.Flags["enable-admission-plugins"] = []string{with.name}
		if content := with.configuration(); content != "" {
			indented := strings.ReplaceAll(strings.TrimSpace(content), "\n", "\n    ")
			o.Files["admission-control-config-file"] = fmt.Appendf(nil,
				"apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins:\n- name: %s\n  configuration:\n    %s\n", with.name, indented)
		}
	}
	cluster, err := testcluster.StartWith(context.WithoutCancel(t.Context()), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Stop(); err != nil {
			t.Error(err)
		}
	})
	config := cluster.Config()
	config.QPS = -1
	s := &server{Cluster: cluster}
	if s.dynamic, err = dynamic.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	if s.typed, err = kubernetes.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	for _, ns := range namespaces(*seed) {
		if ns.Name != metav1.NamespaceSystem { // hooks are not called there
			create(t, s, ns.DeepCopy())
			s.namespaces = append(s.namespaces, ns)
		}
	}
	return s
}

// configuration returns the configuration for the API server: the last one, which has the most content.
func (c *controller) configuration() string {
	list := orOne(c.configurations)
	return list[len(list)-1]
}

// classes returns the objects of a cluster without two default classes: which of them is newer could differ.
func (c *controller) classes() []runtime.Object {
	list := orOne(c.clusters)
	return list[min(2, len(list)-1)]
}

func create(t *testing.T, s *server, object client.Object) {
	t.Helper()
	object.SetCreationTimestamp(metav1.Time{})
	switch class := object.(type) {
	case *storagev1.StorageClass:
		class.Provisioner = "example.com/provisioner"
	case *networkingv1.IngressClass:
		class.Spec.Controller = "example.com/controller"
	}
	if err := s.Client.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
}

func compareServers(t *testing.T, c *controller, with, plain *server) {
	for _, s := range []*server{with, plain} {
		for _, object := range c.classes() {
			object := object.DeepCopyObject().(client.Object)
			create(t, s, object)
			t.Cleanup(func() {
				if err := s.Client.Delete(context.WithoutCancel(t.Context()), object); err != nil {
					t.Error(err)
				}
			})
		}
	}
	without := answers(t, c, plain, "w")
	serve(t, c, plain)
	originals, ours := answers(t, c, with, "o"), answers(t, c, plain, "h")
	var equal, acted int
	differences := map[string]int{}
	for i := range originals {
		original, our := originals[i], ours[i]
		if original.text() != without[i].text() {
			acted++
		}
		if original.text() == our.text() {
			equal++
			continue
		}
		if d := declared(c, original.result, our.result); d != "" {
			differences[d]++
			continue
		}
		t.Errorf("request %d: %s\noriginal %s\nours     %s", i, original.request, original.text(), our.text())
	}
	for _, d := range c.onServer {
		rowOf(c).declared = append(rowOf(c).declared, d.name+" (on API servers)")
		if differences[d.name] == 0 {
			t.Errorf("the difference %q is declared for API servers, but does not exist: remove it", d.name)
		}
	}
	rowOf(c).onServers = fmt.Sprintf("%d/%d", equal, len(originals))
	t.Logf("%s: %d/%d answers of API servers equal; declared differences: %v; %d depend on the controller", c.name, equal, len(originals), differences, acted)
	if acted < serverRequests/50 {
		t.Errorf("the requests show too little: only %d of %d depend on the controller", acted, len(originals))
	}
}

// declared returns the name of the difference between the results, or an empty string.
func declared(c *controller, original, ours result) string {
	for _, d := range slices.Concat(c.differences, c.onServer) {
		if d.is(original, ours) {
			return d.name
		}
	}
	return ""
}

// serve registers the hooks of the controller with the API server until the end of the test.
func serve(t *testing.T, c *controller, s *server) {
	t.Helper()
	in := cluster{s.typed, informers.NewSharedInformerFactory(s.typed, 0)}
	hooks := c.hooksFor(t, in, c.configuration())
	in.factory.Start(t.Context().Done())
	in.factory.WaitForCacheSync(t.Context().Done())
	stop, err := s.Serve(t.Context(), "gallery", hooks...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// An answer of an API server to a request.
type answer struct {
	request string
	result
	stored map[string]any
}

// text returns what is compared.
func (a answer) text() string {
	if a.verdict != allowed {
		return fmt.Sprintf("%s: code %d, reason %q: %s", a.verdict, a.code, a.reason, a.message)
	}
	text, err := json.Marshal(a.stored)
	if err != nil {
		return err.Error()
	}
	return "allowed: " + string(text)
}

// answers sends the generated requests. The names of objects end with the pass and a number, which answers remove again.
func answers(t *testing.T, c *controller, s *server, pass string) []answer {
	t.Helper()
	g := &generator{Rand: rand.New(rand.NewPCG(*seed, 3)), namespaces: s.namespaces}
	var list []answer
	for i := 0; len(list) < serverRequests; i++ {
		r := c.generate(g)
		if known := []string{"pods", "persistentvolumeclaims", "persistentvolumes", "volumeattributesclasses", "ingresses", "services", "priorityclasses"}; !slices.Contains(known, r.resource.Resource) || r.subresource == "binding" {
			continue
		}
		if i%4 > 0 {
			r.makeValid()
		}
		suffix := fmt.Sprintf("-%s-%s%d", strings.ToLower(c.name), pass, i)
		got, err := s.send(t.Context(), r, suffix)
		a := answer{request: fmt.Sprintf("%s %s %s of %s", r.operation, r.resource.Resource, r.subresource, text(r.object)), stored: got}
		if err != nil {
			a.result = resultOf(statusOf(err))
			a.message = plainMessage(a.message, suffix)
			if a.reason == metav1.StatusReasonInvalid { // validation lists the errors of a map in random order
				words := strings.Fields(a.message)
				slices.Sort(words)
				a.message = strings.Join(words, " ")
			}
		} else {
			a.verdict, a.object = allowed, typed(t, r.kind, got)
			a.stored = normalized(got, suffix)
		}
		list = append(list, a)
	}
	return list
}

var (
	denials   = regexp.MustCompile(`admission webhook "[^"]*" denied the request: `)
	generated = regexp.MustCompile(`-[bcdfghjklmnpqrstvwxz2456789]{5}\b`)
	addresses = regexp.MustCompile(`\b10\.0\.\d+\.\d+\b`)
)

// plainMessage returns the message without the prefix of a webhook's denial, without the names of this pass, and without
// random names and addresses.
func plainMessage(message, suffix string) string {
	message = addresses.ReplaceAllString(denials.ReplaceAllString(message, ""), "10.0.0.0")
	return generated.ReplaceAllString(strings.ReplaceAll(message, suffix, ""), "")
}

// typed returns the object as its Go type.
func typed(t *testing.T, kind schema.GroupVersionKind, content map[string]any) runtime.Object {
	t.Helper()
	object, err := legacyscheme.Scheme.New(kind)
	if err != nil {
		t.Fatal(err)
	}
	if content == nil {
		return object
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, object); err != nil {
		t.Fatal(err)
	}
	return object
}

// normalized removes what differs between two API servers: identities, times, addresses and random names.
func normalized(content map[string]any, suffix string) map[string]any {
	if content == nil {
		return nil
	}
	metadata := content["metadata"].(map[string]any)
	for _, key := range []string{"uid", "resourceVersion", "creationTimestamp", "managedFields", "deletionTimestamp"} {
		delete(metadata, key)
	}
	name := strings.TrimSuffix(metadata["name"].(string), suffix)
	if metadata["generateName"] != nil {
		name = generated.ReplaceAllString(name, "")
	}
	metadata["name"] = name
	unstructured.RemoveNestedField(content, "status", "lastPhaseTransitionTime")
	spec, _ := content["spec"].(map[string]any)
	for _, key := range []string{"clusterIP", "clusterIPs", "healthCheckNodePort"} {
		delete(spec, key)
	}
	ports, _ := spec["ports"].([]any)
	for _, port := range ports {
		delete(port.(map[string]any), "nodePort")
	}
	return content
}

// send makes the request. Before an UPDATE or a DELETE it creates the old object. It returns the stored object, which is
// nil after a DELETE. If the old object cannot be created, it returns that error.
func (s *server) send(ctx context.Context, r *request, suffix string) (map[string]any, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	object, err := wire(r.object, r.kind, suffix)
	if err != nil {
		return nil, err
	}
	old, err := wire(r.old, r.kind, suffix)
	if err != nil {
		return nil, err
	}
	in := s.client(r)
	// A stored class would change later requests, after an unknown time.
	dry := r.resource.Resource == "priorityclasses"
	if r.operation == admission.Create {
		return content(in.Create(ctx, object, createOptions(dry)))
	}
	if dry {
		return content(in.Create(ctx, old, createOptions(dry)))
	}
	stored, err := s.createOld(ctx, in, old)
	if err != nil {
		return nil, err
	}
	if r.operation == admission.Delete {
		var now int64
		return nil, in.Delete(ctx, stored.GetName(), metav1.DeleteOptions{GracePeriodSeconds: &now})
	}
	object.SetName(stored.GetName())
	object.SetResourceVersion(stored.GetResourceVersion())
	var subresources []string
	if r.subresource != "" {
		subresources = []string{r.subresource}
	}
	return content(in.Update(ctx, object, metav1.UpdateOptions{}, subresources...))
}

func createOptions(dry bool) (o metav1.CreateOptions) {
	if dry {
		o.DryRun = []string{metav1.DryRunAll}
	}
	return o
}

func (s *server) client(r *request) dynamic.ResourceInterface {
	in := s.dynamic.Resource(r.resource)
	if r.namespace == "" {
		return in
	}
	return in.Namespace(r.namespace)
}

// createOld creates the old object with its status.
func (s *server) createOld(ctx context.Context, in dynamic.ResourceInterface, old *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	status, _, err := unstructured.NestedString(old.Object, "status", "phase")
	if err != nil {
		return nil, err
	}
	stored, err := in.Create(ctx, old, metav1.CreateOptions{})
	if err != nil || status == "" {
		return stored, err
	}
	if err := unstructured.SetNestedField(stored.Object, status, "status", "phase"); err != nil {
		return nil, err
	}
	return in.UpdateStatus(ctx, stored, metav1.UpdateOptions{})
}

// wire returns the object with its kind and with the names of this pass. It returns nil for nil.
func wire(object runtime.Object, kind schema.GroupVersionKind, suffix string) (*unstructured.Unstructured, error) {
	if object == nil {
		return nil, nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{Object: maps.Clone(content)}
	u.SetGroupVersionKind(kind)
	unstructured.RemoveNestedField(u.Object, "metadata", "deletionTimestamp")
	if u.GetName() != "" {
		u.SetName(u.GetName() + suffix)
	}
	return u, nil
}

func content(object *unstructured.Unstructured, err error) (map[string]any, error) {
	var status *apierrors.StatusError
	switch {
	case errors.As(err, &status):
		return nil, status
	case err != nil:
		return nil, fmt.Errorf("sending the request: %w", err)
	}
	return object.Object, nil
}
