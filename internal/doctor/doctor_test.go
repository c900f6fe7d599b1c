// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/pkg/lint"
)

func aTarget(name string, fails bool) *Target {
	return &Target{Kind: Validating, Name: name, Webhook: name + ".example.com", Fails: fails, Bundle: nil,
		Backend: Backend{Service: types.NamespacedName{Namespace: "shop", Name: "hook"}, Port: 443}}
}

// TestUnknownIsNoFinding requires that an empty snapshot has no findings, because missing facts prove nothing.
func TestUnknownIsNoFinding(t *testing.T) {
	s := &Snapshot{Now: time.Now(), Targets: []*Target{aTarget("a", true), {Kind: Conversion, Name: "widgets.example.com", Fails: true, Backend: Backend{URL: "https://a.example.com"}}}}
	for _, f := range Diagnose(s) {
		if f.Check != "AK506" { // the configuration alone shows that caBundle is missing
			t.Errorf("found %+v", f)
		}
	}
}

func TestOneFindingForAllCallers(t *testing.T) {
	s := &Snapshot{Now: time.Now(), Targets: []*Target{aTarget("a", false), aTarget("b", true)},
		Services: map[types.NamespacedName]*corev1.Service{{Namespace: "shop", Name: "hook"}: nil}}
	found := slices.DeleteFunc(Diagnose(s), func(f Finding) bool { return f.Check != "service-missing" })
	if len(found) != 1 || len(found[0].Callers) != 2 || !found[0].Rejects {
		t.Errorf("found %+v, want one finding with two callers that rejects requests", found)
	}
	s.Targets = s.Targets[:1]
	if found := Diagnose(s); slices.ContainsFunc(found, func(f Finding) bool { return f.Rejects }) || RepairOf(s, found) != nil {
		t.Errorf("requests are rejected, although failurePolicy is Ignore: %+v", found)
	}
}

func TestWorstFirst(t *testing.T) {
	all := []Finding{
		find("slow", "a", nil), find("AK203", "a", nil), find("service-missing", "b", []*Target{aTarget("b", false)}),
		find("no-endpoints", "c", []*Target{aTarget("c", true)}), find("service-missing", "a", []*Target{aTarget("a", false)}), find("not-verified", "a", nil),
	}
	slices.SortStableFunc(all, compare)
	var got []string
	for _, f := range all {
		got = append(got, f.Check+" "+f.Subject)
	}
	want := []string{"no-endpoints c", "service-missing a", "service-missing b", "AK203 a", "slow a", "not-verified a"}
	if !slices.Equal(got, want) {
		t.Errorf("the order is %q, want %q", got, want)
	}
}

func TestSymptomsJoinTheirCause(t *testing.T) {
	target := aTarget("a", true)
	s := &Snapshot{Now: time.Now(), Targets: []*Target{target}, Failures: map[*Target][]string{target: {"no endpoints"}},
		Services: map[types.NamespacedName]*corev1.Service{target.Backend.Service: nil}}
	found := slices.DeleteFunc(Diagnose(s), func(f Finding) bool { return f.Check == "AK506" })
	if len(found) != 1 || found[0].Check != "service-missing" || !slices.Contains(found[0].Evidence, "a dry run failed: no endpoints") {
		t.Errorf("found %+v, want service-missing with the failed dry run", found)
	}
}

const sampleMetrics = `# HELP apiserver_admission_webhook_admission_duration_seconds [STABLE] Latency
# TYPE apiserver_admission_webhook_admission_duration_seconds histogram
apiserver_admission_webhook_admission_duration_seconds_bucket{name="a.example.com",operation="CREATE",rejected="false",type="admit",le="0.5"} 90
apiserver_admission_webhook_admission_duration_seconds_bucket{name="a.example.com",operation="CREATE",rejected="false",type="admit",le="1"} 97
apiserver_admission_webhook_admission_duration_seconds_bucket{name="a.example.com",operation="CREATE",rejected="false",type="admit",le="2.5"} 99
apiserver_admission_webhook_admission_duration_seconds_bucket{name="a.example.com",operation="CREATE",rejected="false",type="admit",le="+Inf"} 100
apiserver_admission_webhook_admission_duration_seconds_sum{name="a.example.com",operation="CREATE",rejected="false",type="admit"} 30
apiserver_admission_webhook_admission_duration_seconds_count{name="a.example.com",operation="CREATE",rejected="false",type="admit"} 100
# TYPE apiserver_admission_webhook_rejection_count counter
apiserver_admission_webhook_rejection_count{error_type="no_error",name="a.example.com",operation="CREATE",rejection_code="403",type="admit"} 4
apiserver_admission_webhook_rejection_count{error_type="calling_webhook_error",name="a.example.com",operation="CREATE",rejection_code="0",type="admit"} 2
apiserver_admission_webhook_rejection_count{error_type="apiserver_internal_error",name="a.example.com",operation="CREATE",rejection_code="0",type="admit"} 1
# TYPE apiserver_admission_webhook_fail_open_count counter
apiserver_admission_webhook_fail_open_count{name="b.example.com",type="validating"} 7
# TYPE apiserver_admission_match_condition_evaluation_errors_total counter
apiserver_admission_match_condition_evaluation_errors_total{kind="webhook",name="b.example.com",operation="CREATE",type="validating"} 3
apiserver_admission_match_condition_evaluation_errors_total{kind="policy",name="b.example.com",operation="CREATE",type="validating"} 9
# TYPE apiserver_request_total counter
apiserver_request_total{code="201",component="apiserver",group="",resource="pods",verb="POST",version="v1"} 10
apiserver_request_total{code="200",component="apiserver",group="apps",resource="deployments",verb="APPLY",version="v1"} 5
apiserver_request_total{code="200",component="apiserver",group="",resource="pods",verb="LIST",version="v1"} 1000
apiserver_request_total{code="201",component="apiserver",group="authorization.k8s.io",resource="subjectaccessreviews",verb="POST",version="v1"} 500
# TYPE process_start_time_seconds gauge
process_start_time_seconds 1.7e+09
`

func TestReadMetrics(t *testing.T) {
	m, err := ReadMetrics(strings.NewReader("other_metric{a=\"" + strings.Repeat("x", 100_000) + "\"} 1\n" + sampleMetrics))
	if err != nil {
		t.Fatal(err)
	}
	a, b := m.Calls[CallKey{Mutating, "a.example.com"}], m.Calls[CallKey{Validating, "b.example.com"}]
	if a == nil || b == nil || len(m.Calls) != 2 {
		t.Fatalf("the webhooks are %v", m.Calls)
	}
	if got, want := fmt.Sprint(a.All, a.Denied, a.Failed, a.Above(1), a.AtMost(0.99), a.AtMost(0.999)), "100 4 3 3 2.5 0"; got != want {
		t.Errorf("a: %s, want %s", got, want)
	}
	if got, want := fmt.Sprint(b.All, b.Ignored, b.ConditionErrors, b.AtMost(0.99)), "0 7 3 0"; got != want {
		t.Errorf("b: %s, want %s", got, want)
	}
	if m.Writes != 15 || m.Start.Unix() != 1_700_000_000 {
		t.Errorf("%v writes since %v", m.Writes, m.Start)
	}
	sum := &Metrics{Calls: map[CallKey]*Calls{}}
	sum.Add(m)
	sum.Add(m)
	if rest := sum.Since(m); sum.Writes != 30 || rest.Writes != 15 || rest.Calls[CallKey{Mutating, "a.example.com"}].Above(1) != 3 {
		t.Errorf("the sum is %+v, without the first %+v", sum, rest)
	}
}

func TestReadMetricsRefuses(t *testing.T) {
	for reason, text := range map[string]string{
		"a sample is cut off": "# TYPE apiserver_request_total counter\napiserver_request_total{verb=\"POST\n",
		"a line is too long":  strings.Repeat("x", longestLine+1),
	} {
		if m, err := ReadMetrics(strings.NewReader(text)); err == nil {
			t.Errorf("%s: got %+v", reason, m)
		}
	}
}

func TestFewFailuresAreNoFinding(t *testing.T) {
	target := aTarget("a", true)
	for _, row := range []struct {
		all, failed float64
		want        bool
	}{{10, 1, false}, {10, 2, true}, {1000, 10, false}, {1000, 11, true}} {
		s := &Snapshot{Targets: []*Target{target}, Traffic: &Traffic{Metrics: &Metrics{Calls: map[CallKey]*Calls{target.key(): {All: row.all, Failed: row.failed}}}}}
		if got := len(callProblems(s)) > 0; got != row.want {
			t.Errorf("%v of %v failed: a finding is %v, want %v", row.failed, row.all, got, row.want)
		}
	}
}

func TestOpens(t *testing.T) {
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Ports: []corev1.ContainerPort{{Name: "https", ContainerPort: 9443}}}}}}
	port := func(p intstr.IntOrString, end *int32) []networkingv1.NetworkPolicyPort {
		return []networkingv1.NetworkPolicyPort{{Port: &p, EndPort: end}}
	}
	pods := networkingv1.NetworkPolicyPeer{PodSelector: &metav1.LabelSelector{}}
	block := networkingv1.NetworkPolicyPeer{IPBlock: &networkingv1.IPBlock{CIDR: "10.0.0.0/8"}}
	udp := port(intstr.FromInt32(9443), nil)
	udp[0].Protocol = ptr.To(corev1.ProtocolUDP)
	rows := []struct {
		reason string
		rule   networkingv1.NetworkPolicyIngressRule
		want   bool
	}{
		{"everything", networkingv1.NetworkPolicyIngressRule{}, true},
		{"only Pods", networkingv1.NetworkPolicyIngressRule{From: []networkingv1.NetworkPolicyPeer{pods}}, false},
		{"Pods and addresses", networkingv1.NetworkPolicyIngressRule{From: []networkingv1.NetworkPolicyPeer{pods, block}}, true},
		{"the port", networkingv1.NetworkPolicyIngressRule{Ports: port(intstr.FromInt32(9443), nil)}, true},
		{"the name of the port", networkingv1.NetworkPolicyIngressRule{Ports: port(intstr.FromString("https"), nil)}, true},
		{"another name", networkingv1.NetworkPolicyIngressRule{Ports: port(intstr.FromString("ops"), nil)}, false},
		{"the port of the Service", networkingv1.NetworkPolicyIngressRule{Ports: port(intstr.FromInt32(443), nil)}, false},
		{"a range", networkingv1.NetworkPolicyIngressRule{Ports: port(intstr.FromInt32(9000), ptr.To[int32](9999))}, true},
		{"another range", networkingv1.NetworkPolicyIngressRule{Ports: port(intstr.FromInt32(8000), ptr.To[int32](8999))}, false},
		{"another protocol", networkingv1.NetworkPolicyIngressRule{Ports: udp}, false},
	}
	for _, row := range rows {
		if got := opens(row.rule, pod, 9443); got != row.want {
			t.Errorf("%s: opens is %v, want %v", row.reason, got, row.want)
		}
	}
}

func TestAllowed(t *testing.T) {
	number, percent := intstr.FromInt32, intstr.FromString
	for _, row := range []struct {
		reason string
		budget policyv1.PodDisruptionBudgetSpec
		want   int
	}{
		{"neither field", policyv1.PodDisruptionBudgetSpec{}, 3},
		{"one", policyv1.PodDisruptionBudgetSpec{MaxUnavailable: ptr.To(number(1))}, 1},
		{"more than there are", policyv1.PodDisruptionBudgetSpec{MaxUnavailable: ptr.To(number(9))}, 3},
		{"a share, rounded up", policyv1.PodDisruptionBudgetSpec{MaxUnavailable: ptr.To(percent("50%"))}, 2},
		{"two must stay", policyv1.PodDisruptionBudgetSpec{MinAvailable: ptr.To(number(2))}, 1},
		{"none must stay", policyv1.PodDisruptionBudgetSpec{MinAvailable: ptr.To(number(0))}, 3},
		{"more must stay than there are", policyv1.PodDisruptionBudgetSpec{MinAvailable: ptr.To(number(9))}, 0},
	} {
		if got := allowed(row.budget, 3); got != row.want {
			t.Errorf("%s: %d Pods may be evicted, want %d", row.reason, got, row.want)
		}
	}
}

func TestStateOf(t *testing.T) {
	container := func(s corev1.ContainerStatus) *corev1.Pod {
		s.Name = "hook"
		return &corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{s}}}
	}
	crashed := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 2, Reason: "Error"}}
	for _, row := range []struct {
		pod  *corev1.Pod
		want string
	}{
		{container(corev1.ContainerStatus{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}}}), "container hook is waiting: ImagePullBackOff"},
		{container(corev1.ContainerStatus{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}, LastTerminationState: crashed}),
			"container hook is waiting: CrashLoopBackOff; it ended with exit code 2 (Error)"},
		{container(corev1.ContainerStatus{State: crashed}), "container hook ended with exit code 2 (Error)"},
		{&corev1.Pod{Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "0/3 nodes are available."}}}}, "0/3 nodes are available"},
		{&corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodPending}}, "its phase is Pending"},
	} {
		if got := stateOf(row.pod); got != row.want {
			t.Errorf("the state is %q, want %q", got, row.want)
		}
	}
}

func TestBackend(t *testing.T) {
	service := Backend{Service: types.NamespacedName{Namespace: "shop", Name: "hook"}, Port: 443}
	api := Backend{Service: types.NamespacedName{Namespace: "default", Name: "kubernetes"}, Port: 443}
	address := Backend{URL: "https://127.0.0.1:9443"}
	for _, row := range []struct {
		backend    Backend
		host, text string
		api        bool
	}{
		{service, "hook.shop.svc", "Service shop/hook", false},
		{api, "kubernetes.default.svc", "Service default/kubernetes", true},
		{address, "127.0.0.1", "https://127.0.0.1:9443", false},
		{Backend{URL: "https://kubernetes.default.svc"}, "kubernetes.default.svc", "https://kubernetes.default.svc", true},
	} {
		if b := row.backend; b.Host() != row.host || b.String() != row.text || b.IsAPIServer() != row.api {
			t.Errorf("%+v: %s, %s, %v", b, b.Host(), b, b.IsAPIServer())
		}
	}
}

func TestRepairers(t *testing.T) {
	rule := func(verb, resource string, names ...string) []rbacv1.PolicyRule {
		return []rbacv1.PolicyRule{{APIGroups: []string{registration}, Resources: []string{resource}, Verbs: []string{verb}, ResourceNames: names}}
	}
	var roles []rbacv1.ClusterRole
	var bindings []rbacv1.ClusterRoleBinding
	for name, rules := range map[string][]rbacv1.PolicyRule{
		"all": rule("*", "*"), "this": rule("patch", "validatingwebhookconfigurations", "a"), "other": rule("patch", "validatingwebhookconfigurations", "b"),
		"reads": rule("list", "*"), "mutating": rule("patch", "mutatingwebhookconfigurations"),
	} {
		roles = append(roles, rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules})
		bindings = append(bindings, rbacv1.ClusterRoleBinding{RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: name}, Subjects: []rbacv1.Subject{
			{Kind: rbacv1.UserKind, Name: name}, {Kind: rbacv1.ServiceAccountKind, Namespace: "kube-system", Name: name}, {Kind: rbacv1.ServiceAccountKind, Namespace: "ops", Name: name},
		}})
	}
	got := Repairers([]string{Validating + "/a"}, roles, bindings)
	if want := []string{"ServiceAccount ops/all", "ServiceAccount ops/this", "User all", "User this"}; !slices.Equal(got, want) {
		t.Errorf("%q may repair, want %q", got, want)
	}
	got = Repairers([]string{Validating + "/a", Mutating + "/a"}, roles, bindings)
	if want := []string{"ServiceAccount ops/all", "User all"}; !slices.Equal(got, want) {
		t.Errorf("%q may repair both, want %q", got, want)
	}
}

func TestChecksAreComplete(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range Checks() {
		if c.Title == "" || c.Fix == "" || !slices.Contains(lint.Severities(), c.Severity) || seen[c.ID] {
			t.Errorf("the check %+v is incomplete or exists twice", c)
		}
		seen[c.ID] = true
	}
	for id := range lintRules {
		if !seen[id] {
			t.Errorf("%s is no rule of pkg/lint", id)
		}
	}
}
