// SPDX-License-Identifier: Apache-2.0

package livetest

import (
	"encoding/json"
	"io"
	"reflect"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/admitkit/admitkit/examples/internal/program"
	"github.com/admitkit/admitkit/examples/testcluster"
)

// CheckReferences checks what no API server does: that names, labels and ports in one object
// are those of another, up to the certificate that the API server trusts.
func CheckReferences(t *testing.T, c *testcluster.Cluster, p program.Program) {
	t.Helper()
	objects := render(t, c)
	deployment := into[appsv1.Deployment](t, one(t, objects, "Deployment", ""))
	template := deployment.Spec.Template
	container := template.Spec.Containers[0]

	service := into[corev1.Service](t, one(t, objects, "Service", ""))
	budget := into[policyv1.PodDisruptionBudget](t, one(t, objects, "PodDisruptionBudget", ""))
	network := into[networkingv1.NetworkPolicy](t, one(t, objects, "NetworkPolicy", ""))
	for what, selector := range map[string]map[string]string{
		"Deployment": deployment.Spec.Selector.MatchLabels, "Service": service.Spec.Selector,
		"PodDisruptionBudget": budget.Spec.Selector.MatchLabels, "NetworkPolicy": network.Spec.PodSelector.MatchLabels,
	} {
		if !reflect.DeepEqual(selector, template.Labels) {
			t.Errorf("the %s selects %v, the Pods have %v", what, selector, template.Labels)
		}
	}
	port := container.Ports[0]
	if got := service.Spec.Ports[0].TargetPort.String(); got != port.Name {
		t.Errorf("the Service sends to port %q, the Pods name it %q", got, port.Name)
	}
	if got := network.Spec.Ingress[0].Ports[0].Port.IntVal; got != port.ContainerPort {
		t.Errorf("the NetworkPolicy opens port %d, the Pods listen on %d", got, port.ContainerPort)
	}
	for _, probe := range []*corev1.Probe{container.ReadinessProbe, container.LivenessProbe} {
		if get := probe.HTTPGet; get.Port.String() != port.Name || get.Scheme != corev1.URISchemeHTTPS {
			t.Errorf("a probe asks %s port %s", get.Scheme, get.Port.String())
		}
	}
	if *deployment.Spec.Replicas < 2 || budget.Spec.MaxUnavailable.IntValue() != 1 {
		t.Errorf("%d replicas of which %s may be away", *deployment.Spec.Replicas, budget.Spec.MaxUnavailable)
	}
	account := one(t, objects, "ServiceAccount", "")
	if template.Spec.ServiceAccountName != account.GetName() {
		t.Errorf("the service account is %q, want %q", template.Spec.ServiceAccountName, account.GetName())
	}
	if err := p.Run(t.Context(), append(container.Args, "--print-configuration"), io.Discard, io.Discard); err != nil {
		t.Errorf("the program does not understand its arguments %q: %v", container.Args, err)
	}
	checkTrust(t, objects, service, template.Spec.Volumes)
}

// checkTrust follows the chain from the configurations to the CA.
func checkTrust(t *testing.T, objects []*unstructured.Unstructured, service corev1.Service, volumes []corev1.Volume) {
	t.Helper()
	const annotation = "cert-manager.io/inject-ca-from"
	serving := one(t, objects, "Certificate", service.Name)
	for _, object := range objects {
		if object.GroupVersionKind().Group != "admissionregistration.k8s.io" {
			continue
		}
		if got, want := object.GetAnnotations()[annotation], serving.GetNamespace()+"/"+serving.GetName(); got != want {
			t.Errorf("%s: %s is %q, want %q", object.GetKind(), annotation, got, want)
		}
	}
	names, _, _ := unstructured.NestedStringSlice(serving.Object, "spec", "dnsNames")
	if want := service.Name + "." + service.Namespace + ".svc"; !slices.Contains(names, want) {
		t.Errorf("the certificate is for %q, the API server asks for %s", names, want)
	}
	secret := lookup(t, serving, "spec", "secretName")
	if !slices.ContainsFunc(volumes, func(v corev1.Volume) bool { return v.Secret != nil && v.Secret.SecretName == secret }) {
		t.Errorf("the Pods do not mount the Secret %s", secret)
	}
	issuer := one(t, objects, "Issuer", lookup(t, serving, "spec", "issuerRef", "name").(string))
	ca := one(t, objects, "Certificate", service.Name+"-ca")
	if got, want := lookup(t, issuer, "spec", "ca", "secretName"), lookup(t, ca, "spec", "secretName"); got != want {
		t.Errorf("the issuer signs with the Secret %s, the CA is in %s", got, want)
	}
	if lookup(t, ca, "spec", "isCA") != true {
		t.Error("the CA is none")
	}
	root := one(t, objects, "Issuer", lookup(t, ca, "spec", "issuerRef", "name").(string))
	lookup(t, root, "spec", "selfSigned")
}

func into[T any](t *testing.T, object *unstructured.Unstructured) T {
	t.Helper()
	var value T
	text, err := json.Marshal(object.Object)
	if err == nil {
		err = json.Unmarshal(text, &value)
	}
	if err != nil {
		t.Fatal(err)
	}
	return value
}
