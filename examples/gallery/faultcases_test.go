// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/admitkit/admitkit/examples/gallery/podnodeselector"
	"github.com/admitkit/admitkit/examples/gallery/podtolerationrestriction"
	"github.com/admitkit/admitkit/examples/gallery/serviceaccount"
	"github.com/admitkit/admitkit/examples/gallery/workloaddefaults"
	"github.com/admitkit/admitkit/examples/testcluster"
	"github.com/admitkit/admitkit/pkg/webhook/webhooktest"
)

// The values of faultCase.reads, in the words of docs/gallery.md. A hook that reads objects from the API server fails
// when the API server does not answer. A hook that reads them from a cache does not.
const (
	nothing   = "nothing"
	fromCache = "a cache"
	orServer  = "a cache, or else the API server"
	server    = "the API server"
)

// A faultCase is a request whose answer depends on what the hook reads.
type faultCase struct {
	hook    string
	reads   string
	verdict verdict // without a fault
	// request returns a request about objects of a team, which createTeam creates.
	request func(t *testing.T, team string) *admissionv1.AdmissionRequest
}

func faultCases() []faultCase {
	return []faultCase{
		{"set.alwayspullimages.example.com", nothing, changes, onPod()},
		{"check.alwayspullimages.example.com", nothing, denies, onPod()},
		{"defaultingressclass.example.com", fromCache, changes, onIngress},
		{"defaultstorageclass.example.com", fromCache, changes, onClaim},
		{"defaulttolerationseconds.example.com", nothing, changes, onPod()},
		{"denyescalatingexec.example.com", server, denies, onExec},
		{"denyserviceexternalips.example.com", nothing, denies, onService},
		{"eventratelimit.example.com", nothing, admits, onEvent},
		{"imagepolicywebhook.example.com", nothing, admits, onPod()}, // the service works
		{"limitpodhardantiaffinitytopology.example.com", nothing, denies, onPod(func(p *corev1.Pod) {
			p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: "zone"}},
			}}
		})},
		{"set.limitranger.example.com", orServer, changes, onPod()},
		{"check.limitranger.example.com", orServer, denies, onPod(func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"cpu": resource.MustParse("5")}
		})},
		{"loadbalancerservices.example.com", nothing, denies, onService},
		{"namespaceexists.example.com", orServer, admits, onPod()},
		{"namespacelifecycle.example.com", nothing, denies, onDeletion},
		{"noderestriction.example.com", orServer, denies, onEviction},
		{"unnamed.noderestriction.example.com", nothing, denies, by(onPod(), "system:node:", "system:nodes")},
		{"ownerreferencespermissionenforcement.example.com", server, denies, onOwned},
		{"persistentvolumeclaimresize.example.com", fromCache, denies, onResize},
		{"set.podnodeselector.example.com", orServer, changes, onPod()},
		{"check.podnodeselector.example.com", orServer, denies, onPod(func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"env": "other"} })},
		{"podpreset.example.com", nothing, changes, inTeamA(onPod())},
		{"podsecurity.example.com", orServer, denies, onPod(onHost)},
		{"workloads.podsecurity.example.com", orServer, warns, onDeployment(onHost)},
		{"set.podtolerationrestriction.example.com", orServer, changes, onPod()},
		{"check.podtolerationrestriction.example.com", orServer, denies, onPod(func(p *corev1.Pod) {
			p.Spec.Tolerations = []corev1.Toleration{{Key: "gpu", Operator: corev1.TolerationOpExists}}
		})},
		{"set.priority.example.com", fromCache, changes, onPod()},
		{"check.priority.example.com", fromCache, denies, onPriorityClass},
		{"set.runtimeclass.example.com", orServer, changes, onPod(inClass)},
		{"check.runtimeclass.example.com", orServer, denies, onPod(inClass)},
		{"set.serviceaccount.example.com", orServer, changes, onPod()},
		{"check.serviceaccount.example.com", orServer, denies, onPod(func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{{Name: "a", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "a"}}}}
		})},
		{"namespace.sidecarinjection.example.com", nothing, changes, onPod()},
		{"storageobjectinuseprotection.example.com", nothing, changes, onClaim},
		{"uniqueingresshosts.example.com", fromCache, denies, onIngress},
		{"workloaddefaults.example.com", orServer, changes, onDeployment()},
	}
}

func in(team, name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: team, Name: name} }

func template(team string, changes ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: in(team, "shop"), Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Name: "app", Image: "shop:v1"}}, ServiceAccountName: "shop", PriorityClassName: team,
	}}
	for _, change := range changes {
		change(pod)
	}
	return pod
}

func onHost(p *corev1.Pod) { p.Spec.HostNetwork = true }

func inClass(p *corev1.Pod) { p.Spec.RuntimeClassName = ptr.To(p.Namespace) }

type requestFor = func(t *testing.T, team string) *admissionv1.AdmissionRequest

func created(t *testing.T, kind schema.GroupVersionKind, resource string, object any) *admissionv1.AdmissionRequest {
	t.Helper()
	return webhooktest.Request(t, admissionv1.Create, kind, resource, object, nil)
}

func onPod(changes ...func(*corev1.Pod)) requestFor {
	return func(t *testing.T, team string) *admissionv1.AdmissionRequest {
		t.Helper()
		return created(t, corev1.SchemeGroupVersion.WithKind("Pod"), "pods", template(team, changes...))
	}
}

// inTeamA returns requests about team-a for every team.
func inTeamA(of requestFor) requestFor {
	return func(t *testing.T, _ string) *admissionv1.AdmissionRequest { t.Helper(); return of(t, "team-a") }
}

// by returns requests of another user.
func by(of requestFor, user string, groups ...string) requestFor {
	return func(t *testing.T, team string) *admissionv1.AdmissionRequest {
		t.Helper()
		request := of(t, team)
		request.UserInfo = authenticationv1.UserInfo{Username: user, Groups: groups}
		return request
	}
}

func onDeployment(changes ...func(*corev1.Pod)) requestFor {
	return func(t *testing.T, team string) *admissionv1.AdmissionRequest {
		t.Helper()
		d := &appsv1.Deployment{ObjectMeta: in(team, "shop"), Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: template(team, changes...).Spec}}}
		return created(t, appsv1.SchemeGroupVersion.WithKind("Deployment"), "deployments", d)
	}
}

func onIngress(t *testing.T, team string) *admissionv1.AdmissionRequest {
	t.Helper()
	return created(t, networkingv1.SchemeGroupVersion.WithKind("Ingress"), "ingresses", ingress(team))
}

func ingress(namespace string) *networkingv1.Ingress {
	return &networkingv1.Ingress{ObjectMeta: in(namespace, "shop"), Spec: networkingv1.IngressSpec{
		DefaultBackend: &networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: "shop", Port: networkingv1.ServiceBackendPort{Number: 80}}},
		Rules:          []networkingv1.IngressRule{{Host: "shop.example.com"}},
	}}
}

func onClaim(t *testing.T, team string) *admissionv1.AdmissionRequest {
	t.Helper()
	return created(t, corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"), "persistentvolumeclaims", &corev1.PersistentVolumeClaim{ObjectMeta: in(team, "data")})
}

func onResize(t *testing.T, team string) *admissionv1.AdmissionRequest {
	t.Helper()
	claim := func(size string) *corev1.PersistentVolumeClaim {
		return &corev1.PersistentVolumeClaim{
			ObjectMeta: in(team, "data"), Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound},
			Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: ptr.To("fixed"), Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)},
			}},
		}
	}
	return webhooktest.Request(t, admissionv1.Update, corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"), "persistentvolumeclaims", claim("2Gi"), claim("1Gi"))
}

func onExec(t *testing.T, team string) *admissionv1.AdmissionRequest {
	t.Helper()
	request := webhooktest.Request(t, admissionv1.Connect, corev1.SchemeGroupVersion.WithKind("PodExecOptions"), "pods/exec", &corev1.PodExecOptions{}, nil)
	request.Namespace, request.Name = team, "host"
	return request
}

func onService(t *testing.T, team string) *admissionv1.AdmissionRequest {
	t.Helper()
	return created(t, corev1.SchemeGroupVersion.WithKind("Service"), "services", &corev1.Service{
		ObjectMeta: in(team, "shop"), Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, ExternalIPs: []string{"10.1.1.1"}},
	})
}

func onEvent(t *testing.T, team string) *admissionv1.AdmissionRequest {
	t.Helper()
	return created(t, corev1.SchemeGroupVersion.WithKind("Event"), "events", &corev1.Event{ObjectMeta: in(team, "shop.1")})
}

func onDeletion(t *testing.T, _ string) *admissionv1.AdmissionRequest {
	t.Helper()
	return webhooktest.Request(t, admissionv1.Delete, corev1.SchemeGroupVersion.WithKind("Namespace"), "namespaces", nil,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceDefault}})
}

// onEviction returns the request of a node to evict a Pod of another node.
func onEviction(t *testing.T, team string) *admissionv1.AdmissionRequest {
	t.Helper()
	request := created(t, policyv1.SchemeGroupVersion.WithKind("Eviction"), "pods/eviction", &policyv1.Eviction{ObjectMeta: in(team, "host")})
	request.Resource.Group, request.Resource.Version = "", "v1" // a subresource of Pods
	request.RequestResource = &request.Resource
	request.UserInfo = authenticationv1.UserInfo{Username: "system:node:other", Groups: []string{"system:nodes"}}
	return request
}

// onOwned returns a request of a user without permissions. Each team has its own user, because the hook keeps answers
// about permissions.
func onOwned(t *testing.T, team string) *admissionv1.AdmissionRequest {
	t.Helper()
	object := &corev1.ConfigMap{ObjectMeta: in(team, "shop")}
	object.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "host", UID: "1", BlockOwnerDeletion: ptr.To(true)}}
	request := created(t, corev1.SchemeGroupVersion.WithKind("ConfigMap"), "configmaps", object)
	request.UserInfo = authenticationv1.UserInfo{Username: "eve-" + team}
	return request
}

func onPriorityClass(t *testing.T, team string) *admissionv1.AdmissionRequest {
	t.Helper()
	return created(t, schedulingv1.SchemeGroupVersion.WithKind("PriorityClass"), "priorityclasses",
		&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: team + "-default"}, Value: 1, GlobalDefault: true})
}

// createShared creates objects that all teams use.
func createShared(t *testing.T, c *testcluster.Cluster) {
	t.Helper()
	isDefault := func(name, key string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: name, Annotations: map[string]string{key: "true"}}
	}
	createAll(t, c,
		&storagev1.StorageClass{ObjectMeta: isDefault("standard", "storageclass.kubernetes.io/is-default-class"), Provisioner: "example.com/a"},
		&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fixed"}, Provisioner: "example.com/a"},
		&networkingv1.IngressClass{ObjectMeta: isDefault("standard", networkingv1.AnnotationIsDefaultIngressClass), Spec: networkingv1.IngressClassSpec{Controller: "example.com/a"}},
		&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "standard"}, Value: 10, GlobalDefault: true},
		ingress(metav1.NamespaceDefault),
	)
}

// createTeam creates a Namespace with this name, and other objects that hooks read.
func createTeam(t *testing.T, c *testcluster.Cluster, team string) {
	t.Helper()
	const spot = `[{"key":"spot","operator":"Exists"}]`
	createAll(t, c,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name:   team,
			Labels: map[string]string{workloaddefaults.OwnerLabel: team, "pod-security.kubernetes.io/enforce": "baseline", "pod-security.kubernetes.io/warn": "baseline"},
			Annotations: map[string]string{
				podnodeselector.Annotation: "env=test", podtolerationrestriction.DefaultAnnotation: spot, podtolerationrestriction.WhitelistAnnotation: spot,
			},
		}},
		&corev1.LimitRange{ObjectMeta: in(team, "limits"), Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
			Type: corev1.LimitTypeContainer, Max: corev1.ResourceList{"cpu": resource.MustParse("1")}, DefaultRequest: corev1.ResourceList{"cpu": resource.MustParse("100m")},
		}}}},
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: "shop", Annotations: map[string]string{serviceaccount.EnforceAnnotation: "true"}}},
		&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: team}, Value: 7},
		&nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: team}, Handler: "a", Overhead: &nodev1.Overhead{PodFixed: corev1.ResourceList{"cpu": resource.MustParse("1m")}}},
		template(team, func(p *corev1.Pod) {
			p.Name, p.Spec.NodeName = "host", "node"
			p.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: ptr.To(true)}
		}),
	)
}

// createAll creates the objects.
func createAll(t *testing.T, c *testcluster.Cluster, objects ...client.Object) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	for _, object := range objects {
		if err := c.Client.Create(ctx, object); err != nil {
			t.Fatal(err)
		}
	}
}

// packageOf returns the name of the package of a hook.
func packageOf(hook string) string {
	parts := strings.Split(strings.TrimSuffix(hook, ".example.com"), ".")
	return parts[len(parts)-1]
}
