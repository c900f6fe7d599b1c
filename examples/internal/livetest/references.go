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

// CheckReferences checks references between the manifests, which no API server checks: names, labels, ports,
// and the certificate that the API server trusts.
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
		t.Errorf("all %d replicas may be unavailable: maxUnavailable is %s", *deployment.Spec.Replicas, budget.Spec.MaxUnavailable)
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
		t.Errorf("egress is %v, but only a Pod with a token needs egress", out)
	}
}

// checkQuota checks that the quota selects the Pods of the Deployment and has room for a rollout. Some
// clusters reject Pods with a system priority class unless a quota selects them.
func checkQuota(t *testing.T, quota corev1.ResourceQuota, deployment appsv1.Deployment) {
	t.Helper()
	want := []corev1.ScopedResourceSelectorRequirement{{
		ScopeName: corev1.ResourceQuotaScopePriorityClass, Operator: corev1.ScopeSelectorOpIn,
		Values: []string{deployment.Spec.Template.Spec.PriorityClassName},
	}}
	if quota.Namespace != deployment.Namespace || quota.Spec.ScopeSelector == nil || !reflect.DeepEqual(quota.Spec.ScopeSelector.MatchExpressions, want) {
		t.Errorf("the ResourceQuota does not select the Pods: %+v", quota)
	}
	if room := quota.Spec.Hard.Pods().Value(); room < int64(*deployment.Spec.Replicas)*2 {
		t.Errorf("the ResourceQuota allows %d Pods, but a rollout may need twice %d", room, *deployment.Spec.Replicas)
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
		t.Error("the NetworkPolicy must admit calls from everywhere, and restrict the metrics")
	}
	if got := service.Spec.Ports[0].TargetPort.String(); got != https.Name {
		t.Errorf("the targetPort of the Service is %q, but the port of the Pods is %q", got, https.Name)
	}
	for name, port := range map[string]corev1.ContainerPort{"addr": https, "ops-addr": ops} {
		if got, want := argument(t, container.Args, name), fmt.Sprintf(":%d", port.ContainerPort); got != want {
			t.Errorf("--%s is %q, but the port is %s", name, got, want)
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
			t.Errorf("the %s probe uses %s on port %s", what, get.Scheme, get.Port.String())
		}
	}
}

// checkBudget checks that the grace period is longer than the drain. It also checks that GOMEMLIMIT fits the
// memory limit, and that the requests in flight fit into GOMEMLIMIT.
func checkBudget(t *testing.T, pod corev1.PodSpec, container corev1.Container) {
	t.Helper()
	const drain = 38 * time.Second // the default DrainTimeout of a server, and time for a last scrape
	delay, err := time.ParseDuration(argument(t, container.Args, "shutdown-delay"))
	if err != nil {
		t.Fatal(err)
	}
	if grace := time.Duration(*pod.TerminationGracePeriodSeconds) * time.Second; grace <= delay+drain {
		t.Errorf("the grace period of the Pod is %s, but the program may take %s", grace, delay+drain)
	}
	limit := container.Resources.Limits.Memory().Value()
	goal := resource.MustParse(strings.TrimSuffix(container.Env[0].Value, "B"))
	inFlight := resource.MustParse(argument(t, container.Args, "max-in-flight-bytes"))
	if container.Env[0].Name != "GOMEMLIMIT" || goal.Value() < limit*7/10 || goal.Value() > limit*9/10 {
		t.Errorf("%s is %s of the limit %d", container.Env[0].Name, container.Env[0].Value, limit)
	}
	if inFlight.Value()*8 > goal.Value() {
		t.Errorf("requests in flight of %s may need more memory than %s", inFlight.String(), goal.String())
	}
}

// checkRegistration checks that the configurations refer to the Service.
func checkRegistration(t *testing.T, p program.Program, args []string, service corev1.Service) {
	t.Helper()
	var out bytes.Buffer
	if err := p.Run(t.Context(), append(slices.Clone(args), "--print-configuration"), &out, io.Discard); err != nil {
		t.Fatalf("the program rejects its arguments %q: %v", args, err)
	}
	calls := 0
	for document := range strings.SplitSeq(out.String(), "---\n") {
		var c admissionregistrationv1.ValidatingWebhookConfiguration // the other kind has the same fields
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
		t.Error("the configurations have no webhooks")
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
