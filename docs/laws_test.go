// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"context"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/admitkit/admitkit/pkg/idempotence"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// A lawExample is a pair of handlers that idempotence.md shows for a law. The harness must report the law for the
// handler bad, and nothing for the handler good.
type lawExample struct {
	law       idempotence.Law
	bad, good handler
}

type handler = func(context.Context, *webhook.Request[corev1.Pod]) error

var lawExamples = []lawExample{
	{idempotence.L1, func(_ context.Context, req *webhook.Request[corev1.Pod]) error {
		req.Object.Spec.Containers = append(req.Object.Spec.Containers, agent)
		return nil
	}, ensureAgent},
	{idempotence.L2, func(_ context.Context, req *webhook.Request[corev1.Pod]) error {
		for i := range req.Object.Spec.Containers {
			c := &req.Object.Spec.Containers[i]
			if env(c, "AGENT_ID") != nil {
				return webhook.Deny("AGENT_ID is reserved")
			}
			c.Env = append(c.Env, corev1.EnvVar{Name: "AGENT_ID", Value: "7"})
		}
		return nil
	}, func(_ context.Context, req *webhook.Request[corev1.Pod]) error {
		for i := range req.Object.Spec.Containers {
			c := &req.Object.Spec.Containers[i]
			switch id := env(c, "AGENT_ID"); {
			case id == nil:
				c.Env = append(c.Env, corev1.EnvVar{Name: "AGENT_ID", Value: "7"})
			case id.Value != "7":
				return webhook.Deny("AGENT_ID is reserved")
			}
		}
		return nil
	}},
	{idempotence.L3, func(_ context.Context, req *webhook.Request[corev1.Pod]) error {
		for i := range req.Object.Spec.Containers {
			for name, value := range settings {
				ensureEnv(&req.Object.Spec.Containers[i], name, value)
			}
		}
		return nil
	}, func(_ context.Context, req *webhook.Request[corev1.Pod]) error {
		for i := range req.Object.Spec.Containers {
			for _, name := range slices.Sorted(maps.Keys(settings)) {
				ensureEnv(&req.Object.Spec.Containers[i], name, settings[name])
			}
		}
		return nil
	}},
	{idempotence.L4a, func(_ context.Context, req *webhook.Request[corev1.Pod]) error {
		if req.Object.Annotations["agent.example.com/injected"] == "" {
			req.Object.Spec.Containers = append(req.Object.Spec.Containers, agent)
		}
		metav1.SetMetaDataAnnotation(&req.Object.ObjectMeta, "agent.example.com/injected", "yes")
		return nil
	}, func(_ context.Context, req *webhook.Request[corev1.Pod]) error {
		if !hasContainer(req.Object, agent.Name) {
			req.Object.Spec.Containers = append(req.Object.Spec.Containers, agent)
		}
		metav1.SetMetaDataAnnotation(&req.Object.ObjectMeta, "agent.example.com/injected", "yes")
		return nil
	}},
	{idempotence.L4b, func(_ context.Context, req *webhook.Request[corev1.Pod]) error {
		if hasVolume(req.Object, "token") {
			return nil
		}
		req.Object.Spec.Volumes = append(req.Object.Spec.Volumes, tokenVolume)
		for i := range req.Object.Spec.Containers {
			c := &req.Object.Spec.Containers[i]
			c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: "token", MountPath: "/token"})
		}
		return nil
	}, ensureToken},
	{idempotence.L5, func(_ context.Context, req *webhook.Request[corev1.Pod]) error {
		if !hasVolume(req.Object, "token") {
			req.Object.Spec.Volumes = append(req.Object.Spec.Volumes, tokenVolume)
		}
		for i := range req.Object.Spec.Containers {
			c := &req.Object.Spec.Containers[i]
			if !slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == "token" }) {
				c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: "token", MountPath: "/token"})
			}
		}
		return nil
	}, ensureToken},
	{idempotence.L6, ensureAgent, func(ctx context.Context, req *webhook.Request[corev1.Pod]) error {
		if req.Operation == admissionv1.Create {
			return ensureAgent(ctx, req)
		}
		return nil
	}},
	{idempotence.L7, func(ctx context.Context, req *webhook.Request[corev1.Pod]) error {
		if err := writeRecord(req.Namespace); err != nil {
			return err
		}
		return ensureAgent(ctx, req)
	}, func(ctx context.Context, req *webhook.Request[corev1.Pod]) error {
		if err := req.SideEffect(func() error { return writeRecord(req.Namespace) }); err != nil {
			return err
		}
		return ensureAgent(ctx, req)
	}},
	{idempotence.L10, func(_ context.Context, req *webhook.Request[corev1.Pod]) error {
		byKey := map[string]bool{mine.Key: true}
		kept := []corev1.Toleration{mine}
		for _, t := range req.Object.Spec.Tolerations {
			if !byKey[t.Key] {
				byKey[t.Key], kept = true, append(kept, t)
			}
		}
		req.Object.Spec.Tolerations = kept
		return nil
	}, func(_ context.Context, req *webhook.Request[corev1.Pod]) error {
		if !slices.Contains(req.Object.Spec.Tolerations, mine) {
			req.Object.Spec.Tolerations = append(req.Object.Spec.Tolerations, mine)
		}
		return nil
	}},
	{idempotence.L12, func(_ context.Context, req *webhook.Request[corev1.Pod]) error {
		others := slices.DeleteFunc(req.Object.Spec.Containers, func(c corev1.Container) bool { return c.Name == agent.Name })
		req.Object.Spec.Containers = slices.Insert(others, 0, agent)
		return nil
	}, func(_ context.Context, req *webhook.Request[corev1.Pod]) error {
		if !hasContainer(req.Object, agent.Name) {
			req.Object.Spec.Containers = slices.Insert(req.Object.Spec.Containers, 0, agent)
		}
		return nil
	}},
}

// ensureAgent adds the container agent if the Pod has no container of that name.
func ensureAgent(_ context.Context, req *webhook.Request[corev1.Pod]) error {
	if !hasContainer(req.Object, agent.Name) {
		req.Object.Spec.Containers = append(req.Object.Spec.Containers, agent)
	}
	return nil
}

// ensureToken adds the token volume and its mounts, each only if it is missing.
func ensureToken(_ context.Context, req *webhook.Request[corev1.Pod]) error {
	for _, v := range req.Object.Spec.Volumes {
		if v.Name == "token" && (v.Secret == nil || v.Secret.SecretName != "token") {
			return webhook.Deny("the volume name token is taken")
		}
	}
	if !hasVolume(req.Object, "token") {
		req.Object.Spec.Volumes = append(req.Object.Spec.Volumes, tokenVolume)
	}
	for i := range req.Object.Spec.Containers {
		c := &req.Object.Spec.Containers[i]
		at := slices.IndexFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == "/token" })
		switch {
		case at < 0:
			c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: "token", MountPath: "/token"})
		case c.VolumeMounts[at].Name != "token":
			return webhook.Deny("the path /token is taken in container " + c.Name)
		}
	}
	return nil
}

var (
	agent       = corev1.Container{Name: "agent", Image: "registry.example.com/agent:v2"}
	tokenVolume = corev1.Volume{Name: "token", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "token"}}}
	mine        = corev1.Toleration{Key: "dedicated", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}
	settings    = map[string]string{"A": "1", "B": "2", "C": "3", "D": "4"}
	recorded    int

	registration = admissionregistrationv1.MutatingWebhook{
		Name:        "agent.example.com",
		Rules:       webhook.Rules(webhook.OnCreate("", "v1", "pods")),
		SideEffects: ptr.To(admissionregistrationv1.SideEffectClassNoneOnDryRun),
		// Otherwise, some findings matter for copied objects only and are advice.
		ReinvocationPolicy: ptr.To(admissionregistrationv1.IfNeededReinvocationPolicy),
	}
)

func writeRecord(string) error { recorded++; return nil }

func env(c *corev1.Container, name string) *corev1.EnvVar {
	if i := slices.IndexFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == name }); i >= 0 {
		return &c.Env[i]
	}
	return nil
}

func ensureEnv(c *corev1.Container, name, value string) {
	if env(c, name) == nil {
		c.Env = append(c.Env, corev1.EnvVar{Name: name, Value: value})
	}
}

func hasContainer(pod *corev1.Pod, name string) bool {
	return slices.ContainsFunc(slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers), func(c corev1.Container) bool { return c.Name == name })
}

func hasVolume(pod *corev1.Pod, name string) bool {
	return slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == name })
}

func TestLawExamples(t *testing.T) {
	for _, l := range lawExamples {
		t.Run(string(l.law), func(t *testing.T) {
			laws := l.lawsOf(t, l.bad)
			t.Logf("the wrong code breaks %v", laws)
			if !slices.Contains(laws, l.law) {
				t.Errorf("the wrong code breaks %v, want also %s", laws, l.law)
			}
			if laws := l.lawsOf(t, l.good); len(laws) > 0 {
				t.Errorf("the right code breaks %v", laws)
			}
		})
	}
}

func (l lawExample) lawsOf(t *testing.T, h handler) (laws []idempotence.Law) {
	t.Helper()
	report, err := idempotence.Run(t.Context(), l.subject(h),
		idempotence.Options{Objects: 3, Budget: 10 * time.Minute, Observe: func() any { return recorded }})
	if err != nil || len(report.Incomplete) > 0 {
		t.Fatal(err, report.Incomplete)
	}
	for _, v := range report.Findings {
		if v.Verdict != idempotence.Advice {
			laws = append(laws, v.Law)
		}
	}
	return laws
}

// subject returns a webhook with this handler. It is registered for the creation of Pods, and in the example of law L6
// also for updates.
func (l lawExample) subject(h handler) idempotence.Subject {
	reg := registration
	if l.law == idempotence.L6 {
		reg.Rules = webhook.Rules(webhook.OnWrite("", "v1", "pods"))
	}
	return idempotence.Handler(reg, func() http.Handler { return webhook.Mutating(reg, h) })
}

// TestPagesShowRealReports requires that two pages show reports as the harness prints them. In a page, the line "..."
// stands for omitted lines.
func TestPagesShowRealReports(t *testing.T) {
	late := slices.IndexFunc(lawExamples, func(l lawExample) bool { return l.law == idempotence.L4b })
	for page, subject := range map[string]idempotence.Subject{
		"idempotence.md": lawExamples[late].subject(lawExamples[late].bad),
		"../README.md": idempotence.Handler(registration, func() http.Handler {
			return admission.WithDefaulter(scheme.Scheme, careless{})
		}),
	} {
		t.Run(page, func(t *testing.T) {
			report, err := idempotence.Run(t.Context(), subject, idempotence.Options{Objects: 4, Budget: 10 * time.Minute})
			if err != nil {
				t.Fatal(err)
			}
			var printed strings.Builder
			if err := report.WriteText(&printed, false); err != nil {
				t.Fatal(err)
			}
			text, err := os.ReadFile(page)
			if err != nil {
				t.Fatal(err)
			}
			_, shown, _ := strings.Cut(string(text), "<!-- report -->\n```text\n")
			shown, _, found := strings.Cut(shown, "```")
			if !found {
				t.Fatal("the page shows no report")
			}
			if line, ok := inOrder(shown, printed.String()); !ok {
				t.Errorf("the report has no line\n%s\nCopy the report from\n%s", line, &printed)
			}
		})
	}
}

// inOrder reports whether text contains the lines in this order. It skips empty lines and "...". If the result is
// false, it also returns the first missing line.
func inOrder(lines, text string) (missing string, ok bool) {
	rest := "\n" + text
	for line := range strings.Lines(lines) {
		if strings.TrimSpace(line) == "..." || strings.TrimSpace(line) == "" {
			continue
		}
		_, after, found := strings.Cut(rest, "\n"+line)
		if !found {
			return line, false
		}
		rest = "\n" + after
	}
	return "", true
}

func serviceName(_ context.Context, req *webhook.Request[appsv1.StatefulSet]) error {
	if req.Object.Spec.ServiceName != "" {
		return nil
	}
	if req.Operation == admissionv1.Update {
		old, err := req.OldObject()
		if err != nil {
			return err
		}
		req.Object.Spec.ServiceName = old.Spec.ServiceName
		return nil
	}
	req.Object.Spec.ServiceName = "stateful"
	return nil
}

// TestServiceName tests the handler that idempotence.md shows for updates that replace an object. The same handler must
// fail if it does nothing in updates.
func TestServiceName(t *testing.T) {
	labels := map[string]string{"app": "db"}
	sample := &appsv1.StatefulSet{
		TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "StatefulSet"}, ObjectMeta: metav1.ObjectMeta{Name: "db"},
		Spec: appsv1.StatefulSetSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "db", Image: "db:v1"}}},
		}},
	}
	onCreate := func(ctx context.Context, req *webhook.Request[appsv1.StatefulSet]) error {
		if req.Operation == admissionv1.Update {
			return nil
		}
		return serviceName(ctx, req)
	}
	for name, h := range map[string]func(context.Context, *webhook.Request[appsv1.StatefulSet]) error{"right": serviceName, "on CREATE only": onCreate} {
		newHooks := func() []*webhook.Hook {
			return []*webhook.Hook{webhook.Mutating(admissionregistrationv1.MutatingWebhook{
				Name: "names.example.com", Rules: webhook.Rules(webhook.OnWrite("apps", "v1", "statefulsets")),
			}, h)}
		}
		report, err := idempotence.Run(t.Context(), idempotence.Hooks(newHooks), idempotence.Options{Samples: []runtime.Object{sample}, Objects: 4})
		if err != nil {
			t.Fatal(err)
		}
		if report.OK() != (name == "right") {
			t.Errorf("%s: %d findings, passed %v", name, len(report.Findings), report.OK())
		}
	}
}

// careless is the defaulter that README.md shows.
type careless struct{}

func (careless) Default(_ context.Context, pod *corev1.Pod) error {
	pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: "agent", Image: "agent:v2"})
	return nil
}

// TestGuideShowsTestedCode requires that every Go block under "Fix a fault" in idempotence.md also appears in this
// file, which tests it.
func TestGuideShowsTestedCode(t *testing.T) {
	source, err := os.ReadFile("laws_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(pages(t)["idempotence.md"], "\n## Fix a fault\n")
	section, _, _ = strings.Cut(section, "\n## ")
	tested := withoutIndent(string(source))
	blocks := 0
	for _, match := range goBlock.FindAllStringSubmatch(section, -1) {
		for _, part := range strings.Split(match[2], "\n\n") {
			blocks++
			lines := strings.Split(strings.TrimSpace(withoutIndent(part)), "\n")
			lines = slices.DeleteFunc(lines, func(line string) bool { return strings.HasPrefix(line, "//") })
			if code := strings.Join(lines, "\n"); !strings.Contains(tested, code) {
				t.Errorf("laws_test.go does not contain this code of idempotence.md:\n%s", part)
			}
		}
	}
	if blocks < 2*len(lawExamples)-3 {
		t.Errorf("idempotence.md has only %d parts of code", blocks)
	}
}

func withoutIndent(code string) string {
	var b strings.Builder
	for line := range strings.Lines(code) {
		b.WriteString(strings.TrimLeft(line, "\t"))
	}
	return b.String()
}
