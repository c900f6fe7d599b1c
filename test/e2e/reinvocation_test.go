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

// An edit is the change of a hook in a round, 0 or 1. A nil edit changes nothing.
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

// sign adds an annotation for a hook. It is idempotent, and the API server's plugins ignore it.
func sign(name string) edit {
	return func(_ int, pod *corev1.Pod) { metav1.SetMetaDataAnnotation(&pod.ObjectMeta, name, "was here") }
}

// count writes the number of the round, so that the hook changes the object each time.
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

// inject adds a container without resources. When the API server runs its plugins again,
// LimitRanger sets the defaults of the namespace in it.
func inject(_ int, pod *corev1.Pod) {
	for _, c := range pod.Spec.Containers {
		if c.Name == "sidecar" {
			return
		}
	}
	pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: "sidecar", Image: "example.com/sidecar:1"})
}

// report records the resources of the sidecar, which exist only in the second round.
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

// A sequence is one admission through several hooks.
type sequence struct {
	of    string // the name of the spec
	steps []step
	calls string
	// records are the lines of mutations.
	records     []string
	annotations map[string]string // of the stored object, but those of plugins
	sidecar     bool
}

var sequences = []sequence{
	{
		of:      "calls once a hook that changes nothing (KEP-492, 1)",
		steps:   []step{{name: "a", policy: ifNeeded}},
		calls:   "a",
		records: []string{"round_0_index_0 a.example.com false"},
	},
	{
		of:          "calls once a hook whose change no plugin answers (KEP-492, 2)",
		steps:       []step{{name: "a", policy: ifNeeded, edit: count("a")}},
		calls:       "a",
		records:     []string{"round_0_index_0 a.example.com true"},
		annotations: map[string]string{"a": "round 0"},
	},
	{
		of:      "calls a hook again when a plugin answers its change (KEP-492, 3)",
		steps:   []step{{name: "a", policy: ifNeeded, edit: inject}},
		calls:   "a a",
		records: []string{"round_0_index_0 a.example.com true", "round_1_index_0 a.example.com false"},
		sidecar: true,
	},
	{
		of:          "lets the hook answer what the plugin changed (KEP-492, 3)",
		steps:       []step{{name: "a", policy: ifNeeded, edit: both(inject, report)}},
		calls:       "a a",
		records:     []string{"round_0_index_0 a.example.com true", "round_1_index_0 a.example.com true"},
		annotations: map[string]string{"sidecar-cpu": "25m"},
		sidecar:     true,
	},
	{
		of:    "calls the first hook again after the second changed the object, and no more when that changes nothing (KEP-492, 4)",
		steps: []step{{name: "a", policy: ifNeeded, edit: sign("a")}, {name: "b", policy: ifNeeded, edit: sign("b")}},
		calls: "a b a",
		records: []string{
			"round_0_index_0 a.example.com true", "round_0_index_1 b.example.com true", "round_1_index_0 a.example.com false",
		},
		annotations: map[string]string{"a": "was here", "b": "was here"},
	},
	{
		of:    "calls the second hook again too when the first changes the object again (KEP-492, 5)",
		steps: []step{{name: "a", policy: ifNeeded, edit: count("a")}, {name: "b", policy: ifNeeded, edit: count("b")}},
		calls: "a b a b",
		records: []string{
			"round_0_index_0 a.example.com true", "round_0_index_1 b.example.com true",
			"round_1_index_0 a.example.com true", "round_1_index_1 b.example.com true",
		},
		annotations: map[string]string{"a": "round 1", "b": "round 1"},
	},
	{
		of:    "calls both hooks again when a plugin answers the change of the first",
		steps: []step{{name: "a", policy: ifNeeded, edit: inject}, {name: "b", policy: ifNeeded}},
		calls: "a b a b",
		records: []string{
			"round_0_index_0 a.example.com true", "round_0_index_1 b.example.com false",
			"round_1_index_0 a.example.com false", "round_1_index_1 b.example.com false",
		},
		sidecar: true,
	},
	{
		of:    "calls a hook again after a later one with Never changed the object, and that one no more",
		steps: []step{{name: "a", policy: ifNeeded}, {name: "b", policy: never, edit: sign("b")}},
		calls: "a b a",
		records: []string{
			"round_0_index_0 a.example.com false", "round_0_index_1 b.example.com true", "round_1_index_0 a.example.com false",
		},
		annotations: map[string]string{"b": "was here"},
	},
	{
		of:    "calls again only what came before the change",
		steps: []step{{name: "a", policy: ifNeeded}, {name: "b", policy: ifNeeded, edit: count("b")}, {name: "c", policy: ifNeeded}},
		calls: "a b c a",
		records: []string{
			"round_0_index_0 a.example.com false", "round_0_index_1 b.example.com true", "round_0_index_2 c.example.com false",
			"round_1_index_0 a.example.com false",
		},
		annotations: map[string]string{"b": "round 0"},
	},
	{
		of:          "never calls a hook with Never again",
		steps:       []step{{name: "a", policy: never, edit: count("a")}, {name: "b", policy: ifNeeded, edit: count("b")}},
		calls:       "a b",
		records:     []string{"round_0_index_0 a.example.com true", "round_0_index_1 b.example.com true"},
		annotations: map[string]string{"a": "round 0", "b": "round 0"},
	},
	{
		of: "calls even hooks after the last change again when one before them changes the object in the second round",
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
		of: "does not call for the first time in the second round a hook that matches only then",
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
		of: "does not call again a hook that matches no more",
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

// limited sets default container resources for a namespace, which LimitRanger applies.
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

var _ = Describe("the second round", func() {
	for _, version := range reviewVersions {
		Context("with "+version+" reviews", func() {
			for _, s := range sequences {
				It(s.of, func(ctx context.Context) {
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
					Expect(patched(annotations)).To(ConsistOf(those(s.records, "true")), "a patch is recorded for each change and for nothing else")

					// The API server's own plugin changed the object before any hook saw it, and
					// again what the hooks added.
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

			It("brings a new uid and no other sign that it is one", func(ctx context.Context) {
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

			It("keeps the audit annotation of the first", func(ctx context.Context) {
				ns, seen := newNamespace(ctx), &calls{}
				sequence{steps: []step{{name: "a", policy: ifNeeded}, {name: "b", policy: never, edit: sign("b")}}}.install(ctx, seen, version, ns)
				_, err := clients.CoreV1().Pods(ns).Create(ctx, pod(ns, "one"), metav1.CreateOptions{})
				Expect(err).NotTo(HaveOccurred())
				Expect(seen.names()).To(Equal("a b a"))
				Expect(audited(ctx, "create", ns, "one")).To(HaveKeyWithValue("a.example.com/round", "0"))
			})

			It("is the last: a hook that undoes what a plugin does has the last word", func(ctx context.Context) {
				ns, seen := newNamespace(ctx), &calls{}
				undo := func(_ int, pod *corev1.Pod) { pod.Spec.Tolerations = nil } // which DefaultTolerationSeconds adds
				sequence{steps: []step{{name: "a", policy: ifNeeded, edit: undo}}}.install(ctx, seen, version, ns)
				created, err := clients.CoreV1().Pods(ns).Create(ctx, pod(ns, "one"), metav1.CreateOptions{})
				Expect(err).NotTo(HaveOccurred())
				Expect(created.Spec.Tolerations).To(BeEmpty())
				Expect(seen.names()).To(Equal("a a"))
				Expect(mutations(audited(ctx, "create", ns, "one"))).To(ConsistOf("round_0_index_0 a.example.com true", "round_1_index_0 a.example.com true"))
			})

			It("shows the hook what the plugin made of its change", func(ctx context.Context) {
				ns, seen := newNamespace(ctx), &calls{}
				limited(ctx, ns)
				sequence{steps: []step{{name: "a", policy: ifNeeded, edit: inject}}}.install(ctx, seen, version, ns)
				_, err := clients.CoreV1().Pods(ns).Create(ctx, pod(ns, "one"), metav1.CreateOptions{})
				Expect(err).NotTo(HaveOccurred())
				Expect(seen.names()).To(Equal("a a"))
				Expect(containers(seen.all()[0].object)).To(Equal(map[string]string{"app": "25m"}))
				Expect(containers(seen.all()[1].object)).To(Equal(map[string]string{"app": "25m", "sidecar": "25m"}))
			})
		})
	}

	It("is for changes: a hook that answers every call with no patch lets the earlier ones be", func(ctx context.Context) {
		ns, seen := newNamespace(ctx), &calls{}
		rewrite := func(_ int, pod *corev1.Pod) {
			pod.Labels, pod.Spec.NodeSelector = map[string]string{}, map[string]string{} // as good as none
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

// patched returns the patch records as lines: "round_0_index_1 b.example.com".
func patched(annotations map[string]string) []string {
	GinkgoHelper()
	var lines []string
	for call, r := range records(annotations, patchKey) {
		Expect(r.Patch).NotTo(BeEmpty())
		lines = append(lines, call+" "+r.Webhook)
	}
	return lines
}

// those returns the lines that end with a word, without that word.
func those(lines []string, word string) []string {
	found := []string{}
	for _, line := range lines {
		if rest, ok := strings.CutSuffix(line, " "+word); ok {
			found = append(found, rest)
		}
	}
	return found
}

// containers is requests for a Pod in JSON.
func containers(object []byte) map[string]string {
	GinkgoHelper()
	var pod corev1.Pod
	Expect(json.Unmarshal(object, &pod)).To(Succeed())
	return requests(&pod)
}
