// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"bytes"
	"context"
	"crypto/x509"
	"slices"
	"strings"
	"testing"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/admitkit/admitkit/internal/cli/screen"
)

const registration = "admissionregistration.k8s.io"

// as returns the rig for another user.
func (r *rig) as(user string) *rig {
	other := *r
	other.config = rest.CopyConfig(r.config)
	other.config.Impersonate = rest.ImpersonationConfig{UserName: user}
	other.client = kubernetes.NewForConfigOrDie(other.config)
	return &other
}

// grant gives a user the rules, and nothing else.
func (r *rig) grant(t *testing.T, user string, rules ...rbacv1.PolicyRule) {
	t.Helper()
	ctx, rbac, meta := t.Context(), r.client.RbacV1(), metav1.ObjectMeta{Name: user}
	must(t, second(rbac.ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules}, metav1.CreateOptions{})))
	must(t, second(rbac.ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}, metav1.CreateOptions{})))
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) { return holds(), nil })
	if err != nil {
		t.Fatalf("waiting until %s: %v", what, err)
	}
}

// readAll are the rules that doctor needs, except those of exceptions.
func readAll(exceptions ...string) []rbacv1.PolicyRule {
	rule := func(verbs, group string, resources ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: strings.Fields(verbs)}
	}
	rules := map[string][]rbacv1.PolicyRule{
		"webhooks":    {rule("list", registration, "mutatingwebhookconfigurations", "validatingwebhookconfigurations")},
		"definitions": {rule("list", "apiextensions.k8s.io", "customresourcedefinitions")},
		"apiservices": {rule("list", "apiregistration.k8s.io", "apiservices")},
		"objects":     {rule("get", "", "namespaces", "services")},
		"pods":        {rule("list", "", "pods", "nodes")},
		"slices":      {rule("list", "discovery.k8s.io", "endpointslices")},
		"workloads": {rule("list", "apps", "deployments", "statefulsets", "daemonsets"), rule("list", "autoscaling", "horizontalpodautoscalers"),
			rule("list", "policy", "poddisruptionbudgets"), rule("list", "networking.k8s.io", "networkpolicies")},
		"pods/portforward": {rule("get create", "", "pods/portforward")},
		"services/proxy":   {rule("get", "", "services/proxy")},
		"metrics":          {{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}},
	}
	var all []rbacv1.PolicyRule
	for name, rule := range rules {
		if !slices.Contains(exceptions, name) {
			all = append(all, rule...)
		}
	}
	return all
}

// missing returns the permissions that a report says are missing, sorted.
func missing(r *Report) []string {
	all := []string{}
	for _, g := range r.NotChecked {
		if g.Forbidden {
			all = append(all, g.Verb+" "+g.Resource)
		}
	}
	slices.Sort(all)
	return all
}

// TestRights runs doctor with some of the permissions. It must name the missing ones, and find what the others show.
func TestRights(t *testing.T) {
	r := newRig(t)
	closed := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Name: "closed"}, Spec: networkingv1.NetworkPolicySpec{PodSelector: metav1.LabelSelector{MatchLabels: appLabels}}}
	w := r.world(t, func(w *world) {
		w.rules("CREATE", "", "pods", w.namespace)                                                       // AK203
		w.certificate(w.host(), func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }) // certificate-expired
		w.budget = nil
	})
	must(t, second(r.client.NetworkingV1().NetworkPolicies(w.namespace).Create(t.Context(), closed, metav1.CreateOptions{})))
	all := []string{"AK203 CONFIGURATION", "certificate-expired SERVICE", "no-disruption-budget SERVICE"}
	without := func(check string, more ...string) []string {
		return append(slices.DeleteFunc(slices.Clone(all), func(f string) bool { return strings.HasPrefix(f, check+" ") }), more...)
	}
	rows := []struct {
		user       string
		exceptions []string
		missing    []string
		found      []string
	}{
		{user: "complete", found: all},
		{user: "no-webhooks", exceptions: []string{"webhooks"}, found: []string{},
			missing: []string{"list mutatingwebhookconfigurations." + registration, "list validatingwebhookconfigurations." + registration}},
		{user: "no-definitions", exceptions: []string{"definitions"}, found: all, missing: []string{"list customresourcedefinitions.apiextensions.k8s.io"}},
		{user: "no-portforward", exceptions: []string{"pods/portforward"}, found: without("certificate-expired"), missing: []string{"create pods/portforward"}},
		{user: "no-proxy", exceptions: []string{"services/proxy"}, found: append(slices.Clone(all), "network-policy SERVICE"), missing: []string{"get services/proxy"}},
		{user: "no-metrics", exceptions: []string{"metrics"}, found: all, missing: []string{"get /metrics"}},
		{user: "no-objects", exceptions: []string{"objects"}, found: []string{"AK203 CONFIGURATION"}, missing: []string{"get namespaces", "get services"}},
		{user: "no-slices", exceptions: []string{"slices"}, found: without("certificate-expired"), missing: []string{"list endpointslices.discovery.k8s.io"}},
		{user: "no-pods", exceptions: []string{"pods"}, found: without("no-disruption-budget"), missing: []string{"list nodes", "list pods"}},
		{user: "no-workloads", exceptions: []string{"workloads"}, found: without("no-disruption-budget"), missing: []string{"list daemonsets.apps", "list deployments.apps",
			"list horizontalpodautoscalers.autoscaling", "list networkpolicies.networking.k8s.io", "list poddisruptionbudgets.policy", "list statefulsets.apps"}},
		{user: "nobody", exceptions: []string{"webhooks", "definitions", "apiservices", "objects", "pods", "slices", "workloads", "pods/portforward", "services/proxy", "metrics"}, found: []string{},
			missing: []string{"get /metrics", "list apiservices.apiregistration.k8s.io", "list customresourcedefinitions.apiextensions.k8s.io", "list endpointslices.discovery.k8s.io",
				"list mutatingwebhookconfigurations." + registration, "list validatingwebhookconfigurations." + registration}},
	}
	for _, row := range rows {
		t.Run(row.user, func(t *testing.T) {
			r.grant(t, row.user, readAll(row.exceptions...)...)
			var report *Report
			for range 100 { // until the API server knows the rights
				report = r.as(row.user).doctor(t)
				report.NotChecked = slices.DeleteFunc(report.NotChecked, ofRepair)
				if len(missing(report)) <= len(row.missing) {
					break
				}
			}
			want := []string{}
			for _, f := range row.found {
				want = append(want, w.names(f))
			}
			slices.Sort(want)
			if got := found(report); !slices.Equal(got, want) {
				t.Errorf("found %q, want %q", got, want)
			}
			slices.Sort(row.missing)
			if got := missing(report); !slices.Equal(got, row.missing) {
				t.Errorf("missing are %q, want %q", got, row.missing)
			}
			if report.Incomplete() != (len(row.missing) > 0) {
				t.Errorf("the report is incomplete: %v", report.Incomplete())
			}
			var text bytes.Buffer
			must(t, report.Write("text", &text, screen.Painter{}))
			for _, m := range row.missing {
				if !strings.Contains(strings.Join(strings.Fields(text.String()), " "), "you lack the permission to "+m) {
					t.Errorf("the text does not name %q:\n%s", m, &text)
				}
			}
		})
	}
}

// ofRepair reports whether a permission is missing only for finding out who may repair.
func ofRepair(g Gap) bool { return strings.HasPrefix(g.Resource, "clusterrole") }
