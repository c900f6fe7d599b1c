// SPDX-License-Identifier: Apache-2.0

package livetest

import (
	"bytes"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"github.com/admitkit/admitkit/examples/testcluster"
	"github.com/admitkit/admitkit/pkg/program"
)

// CheckReferences checks what no API server checks: that the names, labels and ports that one object refers to exist in another,
// including the certificate that the API server trusts.
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
	checkPorts(t, container, service, network)
	checkBudget(t, template.Spec, container)
	checkQuota(t, into[corev1.ResourceQuota](t, one(t, objects, "ResourceQuota", "")), deployment)
	if *deployment.Spec.Replicas < 2 || budget.Spec.MaxUnavailable.IntValue() != 1 {
		t.Errorf("%d replicas of which %s may be away", *deployment.Spec.Replicas, budget.Spec.MaxUnavailable)
	}
	account := one(t, objects, "ServiceAccount", "")
	if template.Spec.ServiceAccountName != account.GetName() {
		t.Errorf("the service account is %q, want %q", template.Spec.ServiceAccountName, account.GetName())
	}
	checkRegistration(t, p, container.Args, service)
	if slices.Contains(container.Args, "--self-managed") {
		checkManaged(t, objects, deployment)
	} else {
		checkTrust(t, objects, service, template.Spec.Volumes)
	}
	if out := network.Spec.Egress; (len(out) > 0) != *template.Spec.AutomountServiceAccountToken {
		t.Errorf("with a token there is somebody to call, and without there is nobody: egress is %v", out)
	}
}

// checkQuota: some clusters refuse Pods of a priority of the system that no quota is for, and all those of a quota
// that has no room.
func checkQuota(t *testing.T, quota corev1.ResourceQuota, deployment appsv1.Deployment) {
	t.Helper()
	want := []corev1.ScopedResourceSelectorRequirement{{
		ScopeName: corev1.ResourceQuotaScopePriorityClass, Operator: corev1.ScopeSelectorOpIn,
		Values: []string{deployment.Spec.Template.Spec.PriorityClassName},
	}}
	if quota.Namespace != deployment.Namespace || quota.Spec.ScopeSelector == nil || !reflect.DeepEqual(quota.Spec.ScopeSelector.MatchExpressions, want) {
		t.Errorf("the ResourceQuota is not for the Pods: %+v", quota)
	}
	if room := quota.Spec.Hard.Pods().Value(); room < int64(*deployment.Spec.Replicas)*2 {
		t.Errorf("the ResourceQuota has room for %d Pods, and a rollout may need twice %d", room, *deployment.Spec.Replicas)
	}
}

func checkPorts(t *testing.T, container corev1.Container, service corev1.Service, network networkingv1.NetworkPolicy) {
	t.Helper()
	https, ops := container.Ports[0], container.Ports[1]
	for i, port := range []corev1.ContainerPort{https, ops} {
		if got := network.Spec.Ingress[i].Ports[0].Port.IntVal; got != port.ContainerPort {
			t.Errorf("the NetworkPolicy opens port %d, the Pods listen on %d", got, port.ContainerPort)
		}
	}
	if len(network.Spec.Ingress[0].From) > 0 || len(network.Spec.Ingress[1].From) != 1 {
		t.Error("calls come from anywhere, and metrics are for some")
	}
	if got := service.Spec.Ports[0].TargetPort.String(); got != https.Name {
		t.Errorf("the Service sends to port %q, the Pods name it %q", got, https.Name)
	}
	for name, port := range map[string]corev1.ContainerPort{"addr": https, "ops-addr": ops} {
		if got, want := argument(t, container.Args, name), fmt.Sprintf(":%d", port.ContainerPort); got != want {
			t.Errorf("--%s is %q, and the port %s", name, got, want)
		}
	}
	for what, probe := range map[string]struct {
		*corev1.Probe
		port   corev1.ContainerPort
		scheme corev1.URIScheme
	}{
		"readiness": {container.ReadinessProbe, https, corev1.URISchemeHTTPS}, "liveness": {container.LivenessProbe, ops, ""},
	} {
		if get := probe.HTTPGet; get.Port.String() != probe.port.Name || get.Scheme != probe.scheme {
			t.Errorf("the %s probe asks %s port %s", what, get.Scheme, get.Port.String())
		}
	}
}

// checkBudget checks that there is time to end in, and memory for the calls in flight.
func checkBudget(t *testing.T, pod corev1.PodSpec, container corev1.Container) {
	t.Helper()
	const drain = 38 * time.Second // the default DrainTimeout of a server, and a scrape at its end
	delay, err := time.ParseDuration(argument(t, container.Args, "shutdown-delay"))
	if err != nil {
		t.Fatal(err)
	}
	if grace := time.Duration(*pod.TerminationGracePeriodSeconds) * time.Second; grace <= delay+drain {
		t.Errorf("the Pod has %s to end, and the program takes up to %s", grace, delay+drain)
	}
	limit := container.Resources.Limits.Memory().Value()
	goal := resource.MustParse(strings.TrimSuffix(container.Env[0].Value, "B"))
	inFlight := resource.MustParse(argument(t, container.Args, "max-in-flight-bytes"))
	if container.Env[0].Name != "GOMEMLIMIT" || goal.Value() < limit*7/10 || goal.Value() > limit*9/10 {
		t.Errorf("%s is %s of the limit %d", container.Env[0].Name, container.Env[0].Value, limit)
	}
	if inFlight.Value()*8 > goal.Value() {
		t.Errorf("requests in flight of %s may take more than %s", inFlight.String(), goal.String())
	}
}

// checkRegistration checks that the API server calls the Service.
func checkRegistration(t *testing.T, p program.Program, args []string, service corev1.Service) {
	t.Helper()
	var out bytes.Buffer
	if err := p.Run(t.Context(), append(slices.Clone(args), "--print-configuration"), &out, io.Discard); err != nil {
		t.Fatalf("the program does not understand its arguments %q: %v", args, err)
	}
	calls := 0
	for document := range strings.SplitSeq(out.String(), "---\n") {
		var c admissionregistrationv1.ValidatingWebhookConfiguration // which reads the other kind as well
		if err := yaml.Unmarshal([]byte(document), &c); err != nil {
			t.Fatal(err)
		}
		for _, w := range c.Webhooks {
			calls++
			if s := w.ClientConfig.Service; s.Name != service.Name || s.Namespace != service.Namespace || *s.Port != service.Spec.Ports[0].Port {
				t.Errorf("the API server calls %s/%s:%d for %s", s.Namespace, s.Name, *s.Port, w.Name)
			}
		}
	}
	if calls == 0 {
		t.Error("the API server calls nothing")
	}
}

// argument returns the value of a flag.
func argument(t *testing.T, args []string, name string) string {
	t.Helper()
	for _, arg := range args {
		if value, ok := strings.CutPrefix(arg, "--"+name+"="); ok {
			return value
		}
	}
	t.Fatalf("there is no --%s in %q", name, args)
	return ""
}
