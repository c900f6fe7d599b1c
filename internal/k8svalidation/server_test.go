// SPDX-License-Identifier: Apache-2.0

package k8svalidation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/admitkit/admitkit/internal/apiserver"
	"github.com/admitkit/admitkit/internal/apiserver/need"
)

// A server is a real API server. It runs without the admission plugins that change objects, or that reject them for
// reasons other than validation.
type server struct {
	client client.Client
}

var started struct {
	sync.Once
	server *apiserver.Server
	client client.Client
	err    error
}

func startServer(t *testing.T) server {
	t.Helper()
	need.APIServer(t)
	started.Do(func() {
		started.server, started.err = apiserver.Start(context.WithoutCancel(t.Context()), map[string][]string{"disable-admission-plugins": {
			"ServiceAccount", "Priority", "DefaultTolerationSeconds", "LimitRanger", "TaintNodesByCondition", "RuntimeClass",
			"StorageObjectInUseProtection", "DefaultStorageClass", "DefaultIngressClass", "PodSecurity", "ResourceQuota",
		}})
		if started.err != nil {
			return
		}
		config := *started.server.Config
		config.ContentType = "application/json"
		config.QPS = -1
		config.WarningHandler = rest.NoWarnings{}
		started.client, started.err = client.New(&config, client.Options{})
	})
	if started.err != nil {
		t.Fatal(started.err)
	}
	return server{started.client}
}

func TestMain(m *testing.M) {
	code := m.Run()
	if started.server != nil {
		if err := started.server.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// create sends a dry-run request to create obj, and returns the object or the rejection in the response. It returns nil
// if the name already exists.
func (s server) create(t *testing.T, obj runtime.Object) (runtime.Object, error) {
	t.Helper()
	stored := obj.DeepCopyObject().(client.Object)
	err := s.client.Create(t.Context(), stored, client.DryRunAll)
	if apierrors.IsAlreadyExists(err) {
		return nil, nil
	}
	if err != nil && !isRefusal(err) {
		t.Fatalf("cannot ask the API server: %v", err)
	}
	return stored, err
}

// update replaces the object with the same name, as a dry run.
func (s server) update(t *testing.T, obj runtime.Object) (runtime.Object, error) {
	t.Helper()
	updated := obj.DeepCopyObject().(client.Object)
	err := s.client.Update(t.Context(), updated, client.DryRunAll)
	if err != nil && !isRefusal(err) {
		t.Fatalf("cannot ask the API server: %v", err)
	}
	return updated, err
}

// withIdentity decodes an object and gives it the identity of old.
func withIdentity(object tree, old runtime.Object) (runtime.Object, error) {
	obj, err := typed(object)
	if err != nil {
		return nil, err
	}
	now, was := obj.(client.Object), old.(client.Object)
	now.SetName(was.GetName())
	now.SetUID(was.GetUID())
	now.SetResourceVersion(was.GetResourceVersion())
	keepGenerated(obj, old)
	return obj, nil
}

// keepGenerated copies the fields that the API server generated for old into obj, as clients do when
// they edit an object that they have read.
func keepGenerated(obj, old runtime.Object) {
	switch o := obj.(type) {
	case *batchv1.Job:
		was := old.(*batchv1.Job)
		o.Spec.Selector = was.Spec.Selector
		if o.Spec.Template.Labels == nil {
			o.Spec.Template.Labels = map[string]string{}
		}
		for _, name := range generatedLabels {
			o.Spec.Template.Labels[name] = was.Spec.Template.Labels[name]
		}
	case *corev1.Service:
		was := old.(*corev1.Service)
		o.Spec.ClusterIP, o.Spec.ClusterIPs = was.Spec.ClusterIP, was.Spec.ClusterIPs
		o.Spec.IPFamilies, o.Spec.IPFamilyPolicy = was.Spec.IPFamilies, was.Spec.IPFamilyPolicy
	}
}

// isRefusal reports whether err is the API server's rejection of the object. Other errors mean that the request failed.
func isRefusal(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsInternalError(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) || apierrors.IsConflict(err)
}

// refusals lists the reasons of the API server's rejection, each with its field.
func refusals(err error) []string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil || len(status.Status().Details.Causes) == 0 {
		return []string{err.Error()}
	}
	var list []string
	for _, cause := range status.Status().Details.Causes {
		list = append(list, cause.Field+": "+cause.Message)
	}
	return list
}

func reasons(err error) string { return strings.Join(refusals(err), "\n\t") }

// defaulted returns obj as a tree, without the fields that the API server sets only before storage. Default does not
// set these fields.
func defaulted(t *testing.T, obj runtime.Object) tree {
	t.Helper()
	data, err := json.Marshal(obj)
	if err != nil {
		t.Fatal(err)
	}
	var object tree
	if err := json.Unmarshal(data, &object); err != nil {
		t.Fatal(err)
	}
	delete(object, "status")
	gvks, _, err := scheme.Scheme.ObjectKinds(obj)
	if err != nil {
		t.Fatal(err)
	}
	object["apiVersion"], object["kind"] = gvks[0].GroupVersion().String(), gvks[0].Kind
	meta := object["metadata"].(tree)
	for _, name := range []string{"uid", "creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink"} {
		delete(meta, name)
	}
	if _, generated := meta["generateName"]; generated {
		delete(meta, "name")
	}
	spec, _ := object["spec"].(tree)
	switch obj.(type) {
	case *corev1.Namespace:
		delete(object, "spec")
		if _, generated := meta["generateName"]; generated {
			removeEntry(meta, "labels", corev1.LabelMetadataName)
		}
	case *corev1.Service:
		for _, name := range []string{"clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "healthCheckNodePort"} {
			delete(spec, name)
		}
		if spec["type"] == "ClusterIP" && spec["externalIPs"] == nil { // a change of the type removes them
			delete(spec, "allocateLoadBalancerNodePorts")
			delete(spec, "externalTrafficPolicy")
		}
		ports, _ := spec["ports"].([]any)
		for _, port := range ports {
			delete(port.(tree), "nodePort")
		}
	}
	switch obj.(type) {
	case *appsv1.DaemonSet:
		removeEntry(meta, "annotations", "deprecated.daemonset.template.generation")
	case *batchv1.Job:
		delete(spec, "selector")
		removeEntry(meta, "labels", generatedLabels...)
		template := spec["template"].(tree)
		if meta, ok := template["metadata"].(tree); ok {
			removeEntry(meta, "labels", generatedLabels...)
		}
	}
	return object
}

// generatedLabels are the labels that the API server generates for the pods of a Job.
var generatedLabels = []string{"controller-uid", "job-name", "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name"}

func removeEntry(parent tree, name string, keys ...string) {
	entries, _ := parent[name].(tree)
	for _, key := range keys {
		delete(entries, key)
	}
	if len(entries) == 0 {
		delete(parent, name)
	}
}

// namespace creates a namespace for the objects of a test.
func (s server) namespace(t *testing.T) string {
	t.Helper()
	namespace := &corev1.Namespace{}
	namespace.GenerateName = "builtin-"
	if err := s.client.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	return namespace.Name
}

// storedObjects creates the objects of full, and variants of some of them for which updates have special rules.
func (s server) storedObjects(t *testing.T) []runtime.Object {
	t.Helper()
	namespace := s.namespace(t)
	var list []runtime.Object
	for _, object := range full(t) {
		variants := []tree{object}
		switch object["kind"] {
		case "Pod":
			running := copied(object).(tree)
			delete(running["spec"].(tree), "schedulingGates")
			variants = append(variants, running, running) // twice, because most updates of Pods change running Pods
		case "Job":
			waiting := copied(object).(tree)
			waiting["spec"].(tree)["suspend"] = true
			waiting["metadata"].(tree)["name"] = "waiting"
			variants = append(variants, waiting)
		case "Namespace":
			object["metadata"] = tree{"generateName": "other-", "labels": tree{"team": "a"}}
		}
		for _, variant := range variants {
			obj, err := typed(variant)
			if err != nil {
				t.Fatal(err)
			}
			Default(obj)
			if object["kind"] != "Namespace" {
				obj.(client.Object).SetNamespace(namespace)
			}
			if err := s.client.Create(t.Context(), obj.(client.Object)); err != nil {
				t.Fatalf("cannot create a %s: %v", object["kind"], err)
			}
			list = append(list, obj)
		}
	}
	return list
}
