// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admitkit/admitkit/pkg/webhook"
)

// An edit is the change that a hook makes in round 0 or 1. A nil edit changes nothing.
type edit func(round int, pod *corev1.Pod)

// A step is a mutating hook of a sequence.
type step struct {
	name   string
	policy admissionregistrationv1.ReinvocationPolicyType
	edit   edit
	labels map[string]string // the objectSelector, if any
}

const (
	never    = admissionregistrationv1.NeverReinvocationPolicy
	ifNeeded = admissionregistrationv1.IfNeededReinvocationPolicy
)

// sign returns an edit that adds an annotation with the name of the hook. Plugins of the API server ignore this
// annotation.
func sign(name string) edit {
	return func(_ int, pod *corev1.Pod) { metav1.SetMetaDataAnnotation(&pod.ObjectMeta, name, "was here") }
}

// count returns an edit that writes the number of the round, so that the hook changes the object in both rounds.
func count(name string) edit {
	return func(round int, pod *corev1.Pod) {
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, name, fmt.Sprint("round ", round))
	}
}

// onlyIn returns an edit that applies in one round only.
func onlyIn(round int, e edit) edit {
	return func(r int, pod *corev1.Pod) {
		if r == round {
			e(r, pod)
		}
	}
}

// inject adds a container without resources. The API server then runs its plugins again, and LimitRanger sets the
// namespace's default resources in the container.
func inject(_ int, pod *corev1.Pod) {
	for _, c := range pod.Spec.Containers {
		if c.Name == "sidecar" {
			return
		}
	}
	pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: "sidecar", Image: "example.com/sidecar:1"})
}

// report records the resources of the sidecar in an annotation. The sidecar has resources only in the second round.
func report(_ int, pod *corev1.Pod) {
	for _, c := range pod.Spec.Containers {
		if c.Name == "sidecar" && !c.Resources.Requests.Cpu().IsZero() {
			metav1.SetMetaDataAnnotation(&pod.ObjectMeta, "sidecar-cpu", c.Resources.Requests.Cpu().String())
		}
	}
}

func both(edits ...edit) edit {
	return func(round int, pod *corev1.Pod) {
		for _, e := range edits {
			e(round, pod)
		}
	}
}

// A sequence is one request for which the API server calls several mutating hooks.
type sequence struct {
	name        string // the text of the spec
	steps       []step
	calls       string            // names of the called hooks, in order
	records     []string          // expected lines of mutations
	annotations map[string]string // annotations of the stored object, without those of plugins
	sidecar     bool              // the stored Pod has the sidecar
}

var sequences = []sequence{
	{
		name:    "does not repeat the call of a hook that changes nothing (KEP-492, 1)",
		steps:   []step{{name: "a", policy: ifNeeded}},
		calls:   "a",
		records: []string{"round_0_index_0 a.example.com false"},
	},
	{
		name:        "does not repeat the call of a hook if no plugin reacts to its change (KEP-492, 2)",
		steps:       []step{{name: "a", policy: ifNeeded, edit: count("a")}},
		calls:       "a",
		records:     []string{"round_0_index_0 a.example.com true"},
		annotations: map[string]string{"a": "round 0"},
	},
	{
		name:    "calls a hook again when a plugin reacts to its change (KEP-492, 3)",
		steps:   []step{{name: "a", policy: ifNeeded, edit: inject}},
		calls:   "a a",
		records: []string{"round_0_index_0 a.example.com true", "round_1_index_0 a.example.com false"},
		sidecar: true,
	},
	{
		name:        "lets the hook react to what the plugin changed (KEP-492, 3)",
		steps:       []step{{name: "a", policy: ifNeeded, edit: both(inject, report)}},
		calls:       "a a",
		records:     []string{"round_0_index_0 a.example.com true", "round_1_index_0 a.example.com true"},
		annotations: map[string]string{"sidecar-cpu": "25m"},
		sidecar:     true,
	},
	{
		name:  "calls the first hook again after the second changed the object, and ends if the first changes nothing (KEP-492, 4)",
		steps: []step{{name: "a", policy: ifNeeded, edit: sign("a")}, {name: "b", policy: ifNeeded, edit: sign("b")}},
		calls: "a b a",
		records: []string{
			"round_0_index_0 a.example.com true", "round_0_index_1 b.example.com true", "round_1_index_0 a.example.com false",
		},
		annotations: map[string]string{"a": "was here", "b": "was here"},
	},
	{
		name:  "calls the second hook again, too, when the first changes the object again (KEP-492, 5)",
		steps: []step{{name: "a", policy: ifNeeded, edit: count("a")}, {name: "b", policy: ifNeeded, edit: count("b")}},
		calls: "a b a b",
		records: []string{
			"round_0_index_0 a.example.com true", "round_0_index_1 b.example.com true",
			"round_1_index_0 a.example.com true", "round_1_index_1 b.example.com true",
		},
		annotations: map[string]string{"a": "round 1", "b": "round 1"},
	},
	{
		name:  "calls both hooks again when a plugin reacts to the change of the first",
		steps: []step{{name: "a", policy: ifNeeded, edit: inject}, {name: "b", policy: ifNeeded}},
		calls: "a b a b",
		records: []string{
			"round_0_index_0 a.example.com true", "round_0_index_1 b.example.com false",
			"round_1_index_0 a.example.com false", "round_1_index_1 b.example.com false",
		},
		sidecar: true,
	},
	{
		name:  "calls a hook again after a later hook with Never changed the object, but not the later hook",
		steps: []step{{name: "a", policy: ifNeeded}, {name: "b", policy: never, edit: sign("b")}},
		calls: "a b a",
		records: []string{
			"round_0_index_0 a.example.com false", "round_0_index_1 b.example.com true", "round_1_index_0 a.example.com false",
		},
		annotations: map[string]string{"b": "was here"},
	},
	{
		name:  "calls again only the hooks before the change",
		steps: []step{{name: "a", policy: ifNeeded}, {name: "b", policy: ifNeeded, edit: count("b")}, {name: "c", policy: ifNeeded}},
		calls: "a b c a",
		records: []string{
			"round_0_index_0 a.example.com false", "round_0_index_1 b.example.com true", "round_0_index_2 c.example.com false",
			"round_1_index_0 a.example.com false",
		},
		annotations: map[string]string{"b": "round 0"},
	},
	{
		name:        "does not call a hook with Never again",
		steps:       []step{{name: "a", policy: never, edit: count("a")}, {name: "b", policy: ifNeeded, edit: count("b")}},
		calls:       "a b",
		records:     []string{"round_0_index_0 a.example.com true", "round_0_index_1 b.example.com true"},
		annotations: map[string]string{"a": "round 0", "b": "round 0"},
	},
	{
		name: "calls hooks after the last change again when an earlier hook changes the object in the second round",
		steps: []step{
			{name: "a", policy: ifNeeded}, {name: "b", policy: ifNeeded, edit: count("b")},
			{name: "c", policy: ifNeeded}, {name: "d", policy: ifNeeded, edit: onlyIn(0, count("d"))},
		},
		calls: "a b c d a b c d",
		records: []string{
			"round_0_index_0 a.example.com false", "round_0_index_1 b.example.com true",
			"round_0_index_2 c.example.com false", "round_0_index_3 d.example.com true",
			"round_1_index_0 a.example.com false", "round_1_index_1 b.example.com true",
			"round_1_index_2 c.example.com false", "round_1_index_3 d.example.com false",
		},
		annotations: map[string]string{"b": "round 1", "d": "round 0"},
	},
	{
		name: "does not call a hook that matches only in the second round",
		steps: []step{
			{name: "a", policy: ifNeeded, labels: map[string]string{"marked": "yes"}},
			{name: "b", policy: ifNeeded, edit: func(_ int, pod *corev1.Pod) { metav1.SetMetaDataLabel(&pod.ObjectMeta, "marked", "yes") }},
			{name: "c", policy: ifNeeded, labels: map[string]string{"marked": "yes"}},
			{name: "d", policy: never, edit: sign("d")},
		},
		calls: "b c d b c",
		records: []string{
			"round_0_index_1 b.example.com true", "round_0_index_2 c.example.com false", "round_0_index_3 d.example.com true",
			"round_1_index_1 b.example.com false", "round_1_index_2 c.example.com false",
		},
		annotations: map[string]string{"d": "was here"},
	},
	{
		name: "does not call a hook again that no longer matches",
		steps: []step{
			{name: "a", policy: ifNeeded, labels: map[string]string{"fresh": "yes"}},
			{name: "b", policy: ifNeeded, edit: func(_ int, pod *corev1.Pod) { delete(pod.Labels, "fresh") }},
		},
		calls:   "a b",
		records: []string{"round_0_index_0 a.example.com false", "round_0_index_1 b.example.com true"},
	},
}

// install registers the hooks of the sequence, all in one configuration.
func (s sequence) install(ctx context.Context, seen *calls, version, namespace string) {
	GinkgoHelper()
	var hooks []*webhook.Hook
	var mu sync.Mutex
	rounds := map[string]int{}
	for _, st := range s.steps {
		registration := admissionregistrationv1.MutatingWebhook{
			Name: st.name + ".example.com", NamespaceSelector: only(namespace), AdmissionReviewVersions: []string{version},
			Rules: webhook.Rules(webhook.OnCreate("", "v1", "pods")), ReinvocationPolicy: &st.policy,
		}
		if st.labels != nil {
			registration.ObjectSelector = &metav1.LabelSelector{MatchLabels: st.labels}
		}
		hooks = append(hooks, webhook.Mutating(registration, func(_ context.Context, req *webhook.Request[corev1.Pod]) error {
			saw(seen, st.name, req)
			mu.Lock()
			round := rounds[st.name]
			rounds[st.name]++
			mu.Unlock()
			if st.edit != nil {
				st.edit(round, req.Object)
			}
			return req.Audit("round", fmt.Sprint(round))
		}))
	}
	install(ctx, hooks...)
}

// limited sets the default container resources that LimitRanger applies in a namespace.
func limited(ctx context.Context, namespace string) {
	GinkgoHelper()
	_, err := clients.CoreV1().LimitRanges(namespace).Create(ctx, &corev1.LimitRange{
		ObjectMeta: metav1.ObjectMeta{Name: "defaults"},
		Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
			Type:           corev1.LimitTypeContainer,
			DefaultRequest: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("25m")},
		}}},
	}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
}

// requests returns the CPU that each container requests.
func requests(pod *corev1.Pod) map[string]string {
	cpu := map[string]string{}
	for _, c := range pod.Spec.Containers {
		cpu[c.Name] = c.Resources.Requests.Cpu().String()
	}
	return cpu
}

var _ = Describe("reinvocation", func() {
	for _, version := range reviewVersions {
		Context("with "+version+" reviews", func() {
			for _, s := range sequences {
				It(s.name, func(ctx context.Context) {
					ns, seen := newNamespace(ctx), &calls{}
					limited(ctx, ns)
					s.install(ctx, seen, version, ns)
					fresh := pod(ns, "one")
					fresh.Labels = map[string]string{"fresh": "yes"}
					created, err := clients.CoreV1().Pods(ns).Create(ctx, fresh, metav1.CreateOptions{})
					Expect(err).NotTo(HaveOccurred())
					Expect(seen.names()).To(Equal(s.calls))

					annotations := audited(ctx, "create", ns, "one")
					Expect(mutations(annotations)).To(ConsistOf(s.records))
					Expect(patched(annotations)).To(ConsistOf(linesEndingIn(s.records, "true")), "the API server records a patch for each change, and only for changes")

					// A plugin of the API server sets defaults before the first hook, and again
					// for what the hooks added.
					want := map[string]string{"app": "25m"}
					if s.sidecar {
						want["sidecar"] = "25m"
					}
					Expect(requests(created)).To(Equal(want))
					delete(created.Annotations, "kubernetes.io/limit-ranger")
					if len(s.annotations) == 0 {
						Expect(created.Annotations).To(BeEmpty())
					} else {
						Expect(created.Annotations).To(Equal(s.annotations))
					}
				})
			}

			It("sends a new uid, and otherwise the same request metadata", func(ctx context.Context) {
				ns, seen := newNamespace(ctx), &calls{}
				sequence{steps: []step{{name: "a", policy: ifNeeded}, {name: "b", policy: never, edit: sign("b")}}}.install(ctx, seen, version, ns)
				_, err := clients.CoreV1().Pods(ns).Create(ctx, pod(ns, "one"), metav1.CreateOptions{})
				Expect(err).NotTo(HaveOccurred())
				Expect(seen.names()).To(Equal("a b a"))
				first, second := seen.all()[0].meta, seen.all()[2].meta
				Expect(second.UID).NotTo(Equal(first.UID))
				second.UID = first.UID
				Expect(second).To(Equal(first))
			})

			It("keeps the audit annotation of the first call", func(ctx context.Context) {
				ns, seen := newNamespace(ctx), &calls{}
				sequence{steps: []step{{name: "a", policy: ifNeeded}, {name: "b", policy: never, edit: sign("b")}}}.install(ctx, seen, version, ns)
				_, err := clients.CoreV1().Pods(ns).Create(ctx, pod(ns, "one"), metav1.CreateOptions{})
				Expect(err).NotTo(HaveOccurred())
				Expect(seen.names()).To(Equal("a b a"))
				Expect(audited(ctx, "create", ns, "one")).To(HaveKeyWithValue("a.example.com/round", "0"))
			})

			It("ends after the second round, even if the hook undid the change of a plugin", func(ctx context.Context) {
				ns, seen := newNamespace(ctx), &calls{}
				undo := func(_ int, pod *corev1.Pod) { pod.Spec.Tolerations = nil } // the plugin DefaultTolerationSeconds adds some
				sequence{steps: []step{{name: "a", policy: ifNeeded, edit: undo}}}.install(ctx, seen, version, ns)
				created, err := clients.CoreV1().Pods(ns).Create(ctx, pod(ns, "one"), metav1.CreateOptions{})
				Expect(err).NotTo(HaveOccurred())
				Expect(created.Spec.Tolerations).To(BeEmpty())
				Expect(seen.names()).To(Equal("a a"))
				Expect(mutations(audited(ctx, "create", ns, "one"))).To(ConsistOf("round_0_index_0 a.example.com true", "round_1_index_0 a.example.com true"))
			})

			It("shows the hook how a plugin changed its container", func(ctx context.Context) {
				ns, seen := newNamespace(ctx), &calls{}
				limited(ctx, ns)
				sequence{steps: []step{{name: "a", policy: ifNeeded, edit: inject}}}.install(ctx, seen, version, ns)
				_, err := clients.CoreV1().Pods(ns).Create(ctx, pod(ns, "one"), metav1.CreateOptions{})
				Expect(err).NotTo(HaveOccurred())
				Expect(seen.names()).To(Equal("a a"))
				Expect(requestsIn(seen.all()[0].object)).To(Equal(map[string]string{"app": "25m"}))
				Expect(requestsIn(seen.all()[1].object)).To(Equal(map[string]string{"app": "25m", "sidecar": "25m"}))
			})
		})
	}

	It("does not follow an edit that results in no patch", func(ctx context.Context) {
		ns, seen := newNamespace(ctx), &calls{}
		rewrite := func(_ int, pod *corev1.Pod) {
			pod.Labels, pod.Spec.NodeSelector = map[string]string{}, map[string]string{} // equal to nil in JSON
			pod.Spec.Containers = append([]corev1.Container(nil), pod.Spec.Containers...)
		}
		s := sequence{steps: []step{{name: "a", policy: ifNeeded}, {name: "b", policy: ifNeeded, edit: rewrite}}}
		s.install(ctx, seen, "v1", ns)
		_, err := clients.CoreV1().Pods(ns).Create(ctx, pod(ns, "one"), metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(seen.names()).To(Equal("a b"))
		Expect(mutations(audited(ctx, "create", ns, "one"))).To(ConsistOf("round_0_index_0 a.example.com false", "round_0_index_1 b.example.com false"))
	})
})

// patched returns the patch records of an audit event as lines, such as "round_0_index_1 b.example.com".
func patched(annotations map[string]string) []string {
	GinkgoHelper()
	var lines []string
	for call, r := range records(annotations, patchKey) {
		Expect(r.Patch).NotTo(BeEmpty())
		lines = append(lines, call+" "+r.Webhook)
	}
	return lines
}

// linesEndingIn returns the lines that end with a word, without that word.
func linesEndingIn(lines []string, word string) []string {
	found := []string{}
	for _, line := range lines {
		if rest, ok := strings.CutSuffix(line, " "+word); ok {
			found = append(found, rest)
		}
	}
	return found
}

// requestsIn returns the CPU that each container of a Pod in JSON requests.
func requestsIn(object []byte) map[string]string {
	GinkgoHelper()
	var pod corev1.Pod
	Expect(json.Unmarshal(object, &pod)).To(Succeed())
	return requests(&pod)
}
