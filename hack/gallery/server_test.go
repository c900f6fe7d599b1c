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
// on them.
func TestOnTheServer(t *testing.T) {
	need.APIServer(t)
	all := controllers()
	plain := startServer(t, all, nil)
	for _, c := range all {
		t.Run(c.name, func(t *testing.T) {
			without := plain
			if len(c.hiddenBy) > 0 {
				without = startServer(t, all, nil, c.hiddenBy...)
			}
			compareServers(t, c, startServer(t, all, c, c.hiddenBy...), without)
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

// startServer starts an API server that runs one of the admission controllers, or none of them. It also disables the
// admission controllers called off. NamespaceLifecycle runs unless off contains it.
func startServer(t *testing.T, all []*controller, with *controller, off ...string) *server {
	t.Helper()
	disabled := slices.Clone(off)
	for _, c := range all {
		if c.name != lifecycle.PluginName {
			disabled = append(disabled, c.name)
		}
	}
	disabled = slices.DeleteFunc(disabled, func(name string) bool { return with != nil && name == with.name })
	o := apiserver.Options{
		Flags: map[string][]string{"disable-admission-plugins": disabled, "service-cluster-ip-range": {"10.0.0.0/16"}},
		Files: map[string][]byte{"audit-policy-file": []byte(auditPolicy)},
	}
	auditFile := filepath.Join(t.TempDir(), "audit.log")
	o.Flags["audit-log-path"] = []string{auditFile}
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
	s := &server{Cluster: cluster, audit: auditLog{file: auditFile}}
	s.observe(config)
	if s.dynamic, err = dynamic.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	if s.typed, err = kubernetes.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	for _, ns := range namespaces(*seed) {
		if ns.Name != metav1.NamespaceSystem { // the API server does not call the hooks there
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

func compareServers(t *testing.T, c *controller, with, plain *server) {
	for _, s := range []*server{with, plain} {
		for _, object := range c.classes() {
			object := object.DeepCopyObject().(client.Object)
			create(t, s, object)
			t.Cleanup(func() {
				if err := s.Client.Delete(context.WithoutCancel(t.Context()), object, client.GracePeriodSeconds(0)); err != nil {
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
			t.Errorf("the difference %q is declared for API servers, but never occurred: remove it", d.name)
		}
	}
	rowOf(c).onServers = fmt.Sprintf("%d/%d", equal, len(originals))
	t.Logf("%s: %d/%d answers of API servers equal; declared differences: %v; %d depend on the controller", c.name, equal, len(originals), differences, acted)
	if acted < serverRequests/50 {
		t.Errorf("the requests show too little: only %d of %d answers depend on the controller", acted, len(originals))
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
