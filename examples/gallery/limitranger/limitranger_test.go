// SPDX-License-Identifier: Apache-2.0

package limitranger

import (
	"context"
	"errors"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/examples/gallery/internal/gallerytest"
	"github.com/admitkit/admitkit/examples/internal/hooktest"
	"github.com/admitkit/admitkit/pkg/reads"
	"github.com/admitkit/admitkit/pkg/webhook"
	"github.com/admitkit/admitkit/pkg/webhook/webhooktest"
)

const (
	container = corev1.LimitTypeContainer
	whole     = corev1.LimitTypePod
	storage   = corev1.LimitTypePersistentVolumeClaim
)

// hooks returns the hooks for a namespace with these LimitRanges. Each argument is one LimitRange.
func hooks(t *testing.T, all ...[]corev1.LimitRangeItem) (set, check *webhook.Hook) {
	t.Helper()
	var list []*corev1.LimitRange
	for _, items := range all {
		list = append(list, &corev1.LimitRange{Spec: corev1.LimitRangeSpec{Limits: items}})
	}
	both := hooksReading(t, func() ([]*corev1.LimitRange, error) {
		if len(list) == 0 {
			return nil, apierrors.NewNotFound(corev1.Resource("limitranges"), "*")
		}
		return list, nil
	})
	return hooktest.Named(t, both, "set.limitranger.example.com"), hooktest.Named(t, both, "check.limitranger.example.com")
}

func hooksReading(t *testing.T, get func() ([]*corev1.LimitRange, error)) []*webhook.Hook {
	t.Helper()
	reader, err := reads.New(reads.Options[[]*corev1.LimitRange]{
		Resource: "limitranges",
		Cached:   func(_, _ string) ([]*corev1.LimitRange, error) { return get() },
		Live:     func(context.Context, string, string) ([]*corev1.LimitRange, error) { return get() },
	})
	if err != nil {
		t.Fatal(err)
	}
	return Hooks(reader)
}

// quantities returns a list. The arguments are pairs of a name and a quantity.
func quantities(pairs ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		list[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return list
}

func resources(requests, limits corev1.ResourceList) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Requests: requests, Limits: limits}
}

// pod returns a Pod whose container has these requests and limits.
func pod(requests, limits corev1.ResourceList, changes ...func(*corev1.Pod)) *corev1.Pod {
	p := gallerytest.Pod(changes...)
	p.Spec.Containers[0].Resources = resources(requests, limits)
	return p
}

// starts returns a change that adds an init container, which is a sidecar if always is true.
func starts(requests corev1.ResourceList, always bool) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		c := corev1.Container{Name: "init", Image: "init:v1", Resources: resources(requests, nil)}
		if always {
			c.RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
		}
		p.Spec.InitContainers = append(p.Spec.InitContainers, c)
	}
}

func defaults(requests, limits corev1.ResourceList) corev1.LimitRangeItem {
	return corev1.LimitRangeItem{Type: container, DefaultRequest: requests, Default: limits}
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	small := defaults(quantities("memory", "64Mi", "cpu", "100m"), quantities("cpu", "200m"))
	rows := []struct {
		reason     string
		ranges     [][]corev1.LimitRangeItem
		pod        *corev1.Pod
		want, init corev1.ResourceRequirements
		annotation string
	}{
		{reason: "no LimitRange", pod: pod(nil, nil)},
		{reason: "no default", ranges: [][]corev1.LimitRangeItem{{{Type: whole, Max: quantities("cpu", "1")}}}, pod: pod(nil, nil)},
		{
			reason: "all defaults are set", ranges: [][]corev1.LimitRangeItem{{small}}, pod: pod(nil, nil),
			want:       resources(quantities("cpu", "100m", "memory", "64Mi"), quantities("cpu", "200m")),
			annotation: "LimitRanger plugin set: cpu, memory request for container app; cpu limit for container app",
		}, {
			reason: "own values are kept", ranges: [][]corev1.LimitRangeItem{{small}}, pod: pod(quantities("cpu", "1"), quantities("cpu", "2"), starts(nil, false)),
			want: resources(quantities("cpu", "1", "memory", "64Mi"), quantities("cpu", "2")),
			init: resources(quantities("cpu", "100m", "memory", "64Mi"), quantities("cpu", "200m")),
			annotation: "LimitRanger plugin set: memory request for container app; cpu, memory request for init container init; " +
				"cpu limit for init container init",
		}, {
			reason: "the later item and the earlier LimitRange take precedence",
			ranges: [][]corev1.LimitRangeItem{{small, defaults(quantities("cpu", "150m"), nil)}, {defaults(quantities("cpu", "300m", "example.com/gpu", "1"), nil)}},
			pod:    pod(nil, nil), want: resources(quantities("cpu", "150m", "memory", "64Mi", "example.com/gpu", "1"), quantities("cpu", "200m")),
			annotation: "LimitRanger plugin set: example.com/gpu request for container app",
		},
	}
	for _, row := range rows {
		t.Run(row.reason, func(t *testing.T) {
			t.Parallel()
			set, _ := hooks(t, row.ranges...)
			decision, after := gallerytest.Call(t, set, row.pod, nil)
			gallerytest.Denied(t, decision, "")
			if got := after.Spec.Containers[0].Resources; !equality.Semantic.DeepEqual(got, row.want) {
				t.Errorf("got %v, want %v", got, row.want)
			}
			for _, c := range after.Spec.InitContainers {
				if !equality.Semantic.DeepEqual(c.Resources, row.init) {
					t.Errorf("init container: got %v, want %v", c.Resources, row.init)
				}
			}
			if got := after.Annotations[Annotation]; got != row.annotation {
				t.Errorf("got the annotation %q, want %q", got, row.annotation)
			}
		})
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	const denied = `pods "shop" is forbidden: `
	least := func(of corev1.LimitType) corev1.LimitRangeItem {
		return corev1.LimitRangeItem{Type: of, Min: quantities("cpu", "100m")}
	}
	most := func(of corev1.LimitType) corev1.LimitRangeItem {
		return corev1.LimitRangeItem{Type: of, Max: quantities("cpu", "1")}
	}
	ratio := corev1.LimitRangeItem{Type: container, MaxLimitRequestRatio: quantities("cpu", "1500m")}
	cpu := func(quantity string) corev1.ResourceList { return quantities("cpu", quantity) }
	rows := []struct {
		reason string
		limit  corev1.LimitRangeItem
		pod    *corev1.Pod
		denial string
	}{
		{"a limit for claims", corev1.LimitRangeItem{Type: storage, Min: cpu("1")}, pod(nil, nil), ""},
		{"no request", least(container), pod(nil, cpu("1")), "minimum cpu usage per Container is 100m.  No request is specified"},
		{"a low request", least(container), pod(cpu("50m"), nil), "minimum cpu usage per Container is 100m, but request is 50m"},
		{"a low limit", least(container), pod(cpu("100m"), cpu("50m")), "minimum cpu usage per Container is 100m, but limit is 50m"},
		{"a request and a limit at the minimum", least(container), pod(cpu("0.1"), cpu("0.1")), ""},
		{"no limit", most(container), pod(cpu("1"), nil), "maximum cpu usage per Container is 1.  No limit is specified"},
		{"a high limit", most(container), pod(nil, cpu("1001m")), "maximum cpu usage per Container is 1, but limit is 1001m"},
		{"a high request", most(container), pod(cpu("2"), cpu("1")), "maximum cpu usage per Container is 1, but request is 2"},
		{"a limit and a request at the maximum", most(container), pod(cpu("1"), cpu("1")), ""},
		{"a limit too large for thousandths", most(container), pod(cpu("1"), cpu("9E")), "maximum cpu usage per Container is 1, but limit is 9E"},
		{"a ratio without a request", ratio, pod(nil, cpu("1")), "cpu max limit to request ratio per Container is 1500m, but no request is specified or request is 0"},
		{"a ratio without a limit", ratio, pod(cpu("1"), cpu("0")), "cpu max limit to request ratio per Container is 1500m, but no limit is specified or limit is 0"},
		{"a high ratio", ratio, pod(cpu("1"), cpu("1600m")), "cpu max limit to request ratio per Container is 1500m, but provided ratio is 1.600000"},
		{"a good ratio", ratio, pod(cpu("1"), cpu("1500m")), ""},
		{
			"a ratio too large for thousandths", corev1.LimitRangeItem{Type: container, MaxLimitRequestRatio: cpu("9E")}, pod(cpu("1"), cpu("8E")), "",
		}, {
			"several errors", corev1.LimitRangeItem{Type: container, Min: quantities("memory", "1Gi", "cpu", "1"), Max: cpu("2")}, pod(nil, nil, starts(nil, false)),
			"[minimum cpu usage per Container is 1.  No request is specified, minimum memory usage per Container is 1Gi.  No request is specified, " +
				"maximum cpu usage per Container is 2.  No limit is specified]",
		},
		{"the sum of a Pod", least(whole), pod(cpu("50m"), nil, starts(cpu("20m"), true), starts(cpu("30m"), true)), ""},
		{"a sum that is too low", least(whole), pod(cpu("50m"), nil, starts(cpu("49m"), true)), "minimum cpu usage per Pod is 100m, but request is 99m"},
		{"init containers run alone", least(whole), pod(cpu("50m"), nil, starts(cpu("60m"), false), starts(cpu("70m"), false)), "minimum cpu usage per Pod is 100m, but request is 70m"},
		{"the unit of a sum", corev1.LimitRangeItem{Type: whole, Min: cpu("4Gi")}, pod(cpu("1"), nil, starts(cpu("2G"), true), starts(cpu("1Gi"), false)), "minimum cpu usage per Pod is 4Gi, but request is 3001701Ki"},
		{"an init container beside a sidecar", least(whole), pod(cpu("50m"), nil, starts(cpu("40m"), true), starts(cpu("60m"), false)), ""},
		{
			"the Pod's own resources", corev1.LimitRangeItem{Type: whole, Max: quantities("cpu", "1", "example.com/gpu", "1")},
			pod(nil, quantities("cpu", "1", "example.com/gpu", "1"), func(p *corev1.Pod) {
				p.Spec.Resources = ptr.To(resources(nil, quantities("cpu", "2", "example.com/gpu", "2")))
			}), "maximum cpu usage per Pod is 1, but limit is 2",
		},
	}
	for _, row := range rows {
		t.Run(row.reason, func(t *testing.T) {
			t.Parallel()
			_, check := hooks(t, nil, []corev1.LimitRangeItem{row.limit}, []corev1.LimitRangeItem{most(storage)})
			decision, _ := gallerytest.Call(t, check, row.pod, nil)
			if row.denial != "" {
				row.denial = denied + row.denial
			}
			gallerytest.Denied(t, decision, row.denial)
		})
	}
}

func claim(requests corev1.ResourceList) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"},
		ObjectMeta: metav1.ObjectMeta{Name: "data", Namespace: "team-a"},
		Spec:       corev1.PersistentVolumeClaimSpec{Resources: corev1.VolumeResourceRequirements{Requests: requests}},
	}
}

func TestClaims(t *testing.T) {
	t.Parallel()
	_, check := hooks(t, []corev1.LimitRangeItem{
		{Type: container, Min: quantities("cpu", "1")}, {Type: storage, Min: quantities("storage", "1Gi"), Max: quantities("storage", "2Gi")},
	})
	for size, denial := range map[string]string{
		"1Gi": "", "2048Mi": "",
		"1023Mi": `persistentvolumeclaims "data" is forbidden: minimum storage usage per PersistentVolumeClaim is 1Gi, but request is 1023Mi`,
		"3Gi":    `persistentvolumeclaims "data" is forbidden: maximum storage usage per PersistentVolumeClaim is 2Gi, but request is 3Gi`,
		"": `persistentvolumeclaims "data" is forbidden: [minimum storage usage per PersistentVolumeClaim is 1Gi.  No request is specified, ` +
			`maximum storage usage per PersistentVolumeClaim is 2Gi.  No request is specified]`,
	} {
		var requests corev1.ResourceList
		if size != "" {
			requests = quantities("storage", size)
		}
		old := claim(nil)
		decision, _ := gallerytest.On(t, check, admissionv1.Update, corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"), "persistentvolumeclaims", claim(requests), old)
		gallerytest.Denied(t, decision, denial)
		old.DeletionTimestamp = ptr.To(metav1.NewTime(time.Unix(1, 0)))
		decision, _ = gallerytest.On(t, check, admissionv1.Update, corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"), "persistentvolumeclaims", claim(requests), old)
		gallerytest.Denied(t, decision, "")
	}
}

func TestReadFails(t *testing.T) {
	t.Parallel()
	both := hooksReading(t, func() ([]*corev1.LimitRange, error) { return nil, errors.New("not indexed") })
	for _, hook := range both {
		if got := gallerytest.Fails(t, hook, pod(nil, nil), nil); got != "reading limitranges team-a/*: not indexed" {
			t.Errorf("%s: got %q", hook.Name(), got)
		}
	}
	req := webhooktest.Request(t, admissionv1.Create, corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"), "persistentvolumeclaims", claim(nil), nil)
	if got := webhooktest.Failure(t, both[1], req).Message; got != "reading limitranges team-a/*: not indexed" {
		t.Errorf("got %q", got)
	}
}

// TestIdempotent runs the harness. Its default limit is for a resource that the Pods do not set otherwise: a default
// limit below a request of the container, or above a limit of the Pod, makes the Pod invalid. So it does with the
// original.
func TestIdempotent(t *testing.T) {
	t.Parallel()
	const reason = "the annotation describes the defaults of one call; as in the original, a later call that sets further defaults replaces it"
	gallerytest.IdempotentExceptAt(t, "metadata.annotations["+Annotation+"]", reason, func() *webhook.Hook {
		set, _ := hooks(t, []corev1.LimitRangeItem{defaults(quantities("cpu", "100m", "memory", "64Mi"), quantities("ephemeral-storage", "1Ti"))})
		return set
	}, pod(nil, nil), pod(quantities("cpu", "1"), nil, starts(nil, false)))
}
