// SPDX-License-Identifier: Apache-2.0

package priority

import (
	"errors"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	schedulinglisters "k8s.io/client-go/listers/scheduling/v1"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/examples/gallery/internal/gallerytest"
	"github.com/admitkit/admitkit/pkg/idempotence"
	"github.com/admitkit/admitkit/pkg/webhook"
	"github.com/admitkit/admitkit/pkg/webhook/webhooktest"
)

func class(name string, value int32, global bool, policy corev1.PreemptionPolicy) *schedulingv1.PriorityClass {
	c := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value, GlobalDefault: global}
	if policy != "" {
		c.PreemptionPolicy = &policy
	}
	return c
}

func hooks(t *testing.T, classes ...runtime.Object) []*webhook.Hook {
	t.Helper()
	return Hooks(schedulinglisters.NewPriorityClassLister(gallerytest.Lister(t, classes...)))
}

func pod(class string, priority *int32, policy corev1.PreemptionPolicy) *corev1.Pod {
	return gallerytest.Pod(func(p *corev1.Pod) {
		p.Spec.PriorityClassName, p.Spec.Priority = class, priority
		if policy != "" {
			p.Spec.PreemptionPolicy = &policy
		}
	})
}

func TestPods(t *testing.T) {
	high, never := class("high", 1000, false, ""), class("never", 5, false, corev1.PreemptNever)
	defaults := []runtime.Object{high, class("b", 7, true, ""), class("a", 3, true, corev1.PreemptNever)}
	rows := []struct {
		name           string
		classes        []runtime.Object
		pod, old, want *corev1.Pod
		denial         string
	}{
		{"no default", []runtime.Object{high}, pod("", nil, ""), nil, pod("", ptr.To[int32](0), corev1.PreemptLowerPriority), ""},
		{"the lowest default", defaults, pod("", nil, ""), nil, pod("a", ptr.To[int32](3), corev1.PreemptNever), ""},
		{"the Pod names a class", defaults, pod("high", nil, ""), nil, pod("high", ptr.To[int32](1000), ""), ""},
		{"the Pod has the value of its class", defaults, pod("high", ptr.To[int32](1000), corev1.PreemptNever), nil, pod("high", ptr.To[int32](1000), corev1.PreemptNever), ""},
		{"the Pod has another value", defaults, pod("high", ptr.To[int32](1), ""), nil, nil,
			`pods "shop" is forbidden: the integer value of priority (1) must not be provided in pod spec; priority admission controller computed 1000 from the given PriorityClass name`},
		{"the Pod has another preemption policy", []runtime.Object{never}, pod("never", nil, corev1.PreemptLowerPriority), nil, nil,
			`pods "shop" is forbidden: the string value of PreemptionPolicy (PreemptLowerPriority) must not be provided in pod spec; priority admission controller computed Never from the given PriorityClass name`},
		{"no such class", defaults, pod("gone", nil, ""), nil, nil, `pods "shop" is forbidden: no PriorityClass with name gone was found`},
		{"an update keeps the values", defaults, pod("high", nil, ""), pod("high", ptr.To[int32](9), corev1.PreemptNever), pod("high", ptr.To[int32](9), corev1.PreemptNever), ""},
		{"an update with values", defaults, pod("high", ptr.To[int32](1), ""), pod("high", ptr.To[int32](9), ""), pod("high", ptr.To[int32](1), ""), ""},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			decision, after := gallerytest.Call(t, hooks(t, row.classes...)[0], row.pod, row.old)
			gallerytest.Denied(t, decision, row.denial)
			if row.want == nil {
				return
			}
			got, want := after.Spec, row.want.Spec
			if got.PriorityClassName != want.PriorityClassName || !ptr.Equal(got.Priority, want.Priority) || !ptr.Equal(got.PreemptionPolicy, want.PreemptionPolicy) {
				t.Errorf("got %s, %v, %v", got.PriorityClassName, got.Priority, got.PreemptionPolicy)
			}
		})
	}
}

func TestPriorityClasses(t *testing.T) {
	const denial = "PriorityClass a is already marked as default. Only one default can exist"
	a, b := class("a", 1, true, ""), class("b", 2, true, "")
	rows := []struct {
		name     string
		classes  []runtime.Object
		new, old *schedulingv1.PriorityClass
		denial   string
	}{
		{"the first default", nil, a, nil, ""},
		{"a second default", []runtime.Object{a}, b, nil, `priorityclasses.scheduling.k8s.io "b" is forbidden: ` + denial},
		{"no default", []runtime.Object{a}, class("b", 2, false, ""), nil, ""},
		{"an update of the default", []runtime.Object{a}, a, a, ""},
		{"an update makes a second default", []runtime.Object{a}, b, class("b", 2, false, ""), `priorityclasses.scheduling.k8s.io "b" is forbidden: ` + denial},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			op := admissionv1.Create
			if row.old != nil {
				op = admissionv1.Update
			}
			decision, _ := gallerytest.On(t, hooks(t, row.classes...)[1], op, schedulingv1.SchemeGroupVersion.WithKind("PriorityClass"), "priorityclasses", row.new, row.old)
			gallerytest.Denied(t, decision, row.denial)
		})
	}
}

type noLister struct {
	schedulinglisters.PriorityClassLister
}

func (noLister) List(labels.Selector) ([]*schedulingv1.PriorityClass, error) {
	return nil, errors.New("not indexed")
}

func TestListFails(t *testing.T) {
	list := Hooks(noLister{})
	if got := gallerytest.Fails(t, list[0], pod("", nil, ""), nil); got != "not indexed" {
		t.Errorf("got %q", got)
	}
	req := webhooktest.Request(t, admissionv1.Create, schedulingv1.SchemeGroupVersion.WithKind("PriorityClass"), "priorityclasses", class("a", 1, true, ""), nil)
	if got := webhooktest.Failure(t, list[1], req).Message; got != "not indexed" {
		t.Errorf("got %q", got)
	}
}

func TestIdempotent(t *testing.T) {
	const reason = "if another webhook removes the class of the Pod, the priority contradicts the default class; the original denies such a Pod in its second call, too"
	gallerytest.IdempotentExcept(t, idempotence.L4a, reason, func() *webhook.Hook {
		return hooks(t, class("high", 1000, false, corev1.PreemptNever), class("low", -1, true, ""))[0]
	}, pod("", nil, ""), pod("high", nil, ""))
}
