// SPDX-License-Identifier: Apache-2.0

package gallery

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/admitkit/admitkit/examples/testcluster"
	"github.com/admitkit/admitkit/internal/apiserver"
	"github.com/admitkit/admitkit/internal/apiserver/need"
)

// serverRequests is the number of generated requests for each admission controller and API server.
const serverRequests = 150

// TestOnTheServer sends requests to two API servers: one runs the original, the other one calls the hooks. The answers
// and the stored objects must be equal. A third pass, without the original and the hooks, shows how many answers depend
// on them. Both servers use the same etcd, so that the one without the original can create the objects to update and to
// delete. It does so before it calls the hooks.
func TestOnTheServer(t *testing.T) {
	need.APIServer(t)
	all := controllers()
	shared := startServer(t, all)
	for _, c := range all {
		t.Run(c.name, func(t *testing.T) {
			plain := shared
			if len(c.hiddenBy) > 0 {
				plain = startServer(t, all, c.hiddenBy...)
			}
			compareServers(t, all, c, plain)
		})
	}
}

// A server is an API server with its clients.
type server struct {
	*testcluster.Cluster
	dynamic    dynamic.Interface
	typed      kubernetes.Interface
	namespaces []*corev1.Namespace // the Namespaces that were created
	warnings   warningLog
	audit      auditLog
}

// startServer starts an API server that runs none of the admission controllers in all. It also disables those in off.
// NamespaceLifecycle runs unless off contains it.
func startServer(t *testing.T, all []*controller, off ...string) *server {
	t.Helper()
	s := start(t, apiserver.Options{Flags: map[string][]string{"disable-admission-plugins": disabled(all, nil, off)}})
	for _, ns := range namespaces(*seed) {
		if ns.Name != metav1.NamespaceSystem { // the API server does not call the hooks there
			create(t, s, ns.DeepCopy())
			s.namespaces = append(s.namespaces, ns)
		}
	}
	return s
}

// startOriginal starts an API server with the etcd of another one. It runs one of the admission controllers.
func (s *server) startOriginal(t *testing.T, all []*controller, c *controller) *server {
	t.Helper()
	o := apiserver.Options{
		Flags: map[string][]string{
			"disable-admission-plugins": disabled(all, c, c.hiddenBy), "enable-admission-plugins": {c.name}, "etcd-servers": {s.Etcd()},
		},
		Files: map[string][]byte{},
	}
	if content := c.configuration(); content != "" {
		indented := strings.ReplaceAll(strings.TrimSpace(content), "\n", "\n    ")
		o.Files["admission-control-config-file"] = fmt.Appendf(nil,
			"apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins:\n- name: %s\n  configuration:\n    %s\n", c.name, indented)
	}
	return start(t, o)
}

// disabled returns the admission controllers to disable: those in off, and those in all except for with and
// NamespaceLifecycle.
func disabled(all []*controller, with *controller, off []string) []string {
	list := slices.Clone(off)
	for _, c := range all {
		if c.name != lifecycle.PluginName {
			list = append(list, c.name)
		}
	}
	return slices.DeleteFunc(list, func(name string) bool { return with != nil && name == with.name })
}

// start starts an API server with these options until the end of the test.
func start(t *testing.T, o apiserver.Options) *server {
	t.Helper()
	auditFile := filepath.Join(t.TempDir(), "audit.log")
	o.Flags["service-cluster-ip-range"], o.Flags["audit-log-path"] = []string{"10.0.0.0/16"}, []string{auditFile}
	if o.Files == nil {
		o.Files = map[string][]byte{}
	}
	o.Files["audit-policy-file"] = []byte(auditPolicy)
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
	s := &server{Cluster: cluster, audit: auditLog{file: auditFile}}
	s.observe(config)
	if s.dynamic, err = dynamic.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	if s.typed, err = kubernetes.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	return s
}

// configuration returns the configuration for the API server: the last one, which has the most content.
func (c *controller) configuration() string {
	list := orOne(c.configurations)
	return list[len(list)-1]
}

// classes returns the objects of a cluster with at most one default class. Of two, another one could be the newer one
// on each API server.
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
	complete := object.DeepCopyObject().(client.Object)
	if err := s.Client.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	switch complete.(type) {
	case *corev1.Pod, *corev1.PersistentVolumeClaim: // a CREATE ignores the status
		complete.SetResourceVersion(object.GetResourceVersion())
		complete.SetUID(object.GetUID())
		if err := s.Client.Status().Update(t.Context(), complete); err != nil {
			t.Fatal(err)
		}
	}
}

func compareServers(t *testing.T, all []*controller, c *controller, plain *server) {
	for _, object := range c.classes() {
		object := object.DeepCopyObject().(client.Object)
		create(t, plain, object)
		t.Cleanup(func() {
			if err := plain.Client.Delete(context.WithoutCancel(t.Context()), object, client.GracePeriodSeconds(0)); err != nil {
				t.Error(err)
			}
		})
	}
	first, second, third := newPass(t, c, plain, "w"), newPass(t, c, plain, "o"), newPass(t, c, plain, "h")
	without := first.answers(t, c, plain)
	originals := second.answers(t, c, plain.startOriginal(t, all, c))
	serve(t, c, plain)
	ours := third.answers(t, c, plain)
	count := newServerTally()
	for i := range originals {
		original, our := originals[i], ours[i]
		if original.request != our.request {
			t.Fatalf("the requests differ: %s and %s", original.request, our.request)
		}
		count.add(original, without[i])
		if original.text() == our.text() {
			count.equal++
			continue
		}
		if d := explained(slices.Concat(c.differences, c.onServer), &comparison{T: t, request: original.sent, onServers: true, original: original.result, ours: our.result}); d != nil {
			count.differences[d.name]++
			continue
		}
		t.Errorf("request %d: %s\noriginal %s\nours     %s", i, original.request, original.text(), our.text())
	}
	count.summarize(t, c, second)
}

// serve registers the hooks of the controller with the API server until the end of the test. It returns the informers
// of the hooks.
func serve(t *testing.T, c *controller, s *server) cluster {
	t.Helper()
	in := cluster{client: s.typed, factory: informers.NewSharedInformerFactory(s.typed, 0)}
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
	return in
}
