// SPDX-License-Identifier: Apache-2.0

package runtimeclass

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/examples/gallery/internal/gallerytest"
	"github.com/admitkit/admitkit/pkg/reads"
	"github.com/admitkit/admitkit/pkg/webhook"
)

var (
	overhead = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("250m")}
	gpu      = corev1.Toleration{Key: "gpu", Operator: corev1.TolerationOpExists}
)

func hooks(t *testing.T) []*webhook.Hook {
	t.Helper()
	get := func(name string) (*nodev1.RuntimeClass, error) {
		class := &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: name}}
		switch name {
		case "plain":
		case "heavy":
			class.Overhead = &nodev1.Overhead{PodFixed: overhead}
			class.Scheduling = &nodev1.Scheduling{NodeSelector: map[string]string{"runtime": "vm"}, Tolerations: []corev1.Toleration{gpu}}
		case "unreadable":
			return nil, errors.New("timed out")
		default:
			return nil, apierrors.NewNotFound(nodev1.Resource("runtimeclasses"), name)
		}
		return class, nil
	}
	reader, err := reads.New(reads.Options[*nodev1.RuntimeClass]{
		Resource: "runtimeclasses",
		Cached:   func(_, name string) (*nodev1.RuntimeClass, error) { return get(name) },
		Live:     func(_ context.Context, _, name string) (*nodev1.RuntimeClass, error) { return get(name) },
	})
	if err != nil {
		t.Fatal(err)
	}
	return Hooks(reader)
}

func pod(class string, changes ...func(*corev1.PodSpec)) *corev1.Pod {
	return gallerytest.Pod(func(p *corev1.Pod) {
		if class != "" {
			p.Spec.RuntimeClassName = ptr.To(class)
		}
		for _, change := range changes {
			change(&p.Spec)
		}
	})
}

func withOverhead(s *corev1.PodSpec) { s.Overhead = overhead.DeepCopy() }

func TestHooks(t *testing.T) {
	const (
		without  = `pods "shop" is forbidden: pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead`
		other    = `pods "shop" is forbidden: pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead`
		notFound = `pods "shop" is forbidden: pod rejected: RuntimeClass "gone" not found`
		conflict = `pods "shop" is forbidden: conflict: runtimeClass.scheduling.nodeSelector[runtime] = vm; pod.spec.nodeSelector[runtime] = os`
	)
	selects := func(value string) func(*corev1.PodSpec) {
		return func(s *corev1.PodSpec) { s.NodeSelector = map[string]string{"runtime": value, "zone": "a"} }
	}
	tooMuch := func(s *corev1.PodSpec) {
		s.Overhead = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
	}
	heavy := func(s *corev1.PodSpec) {
		withOverhead(s)
		s.NodeSelector, s.Tolerations = map[string]string{"runtime": "vm"}, []corev1.Toleration{gpu}
	}
	rows := []struct {
		name                 string
		pod, want            *corev1.Pod
		mutating, validating string // the denials
	}{
		{"no class", pod(""), pod(""), "", ""},
		{"an overhead without a class", pod("", withOverhead), pod("", withOverhead), "", without},
		{"a class without an overhead", pod("plain", withOverhead), pod("plain", withOverhead), "", without},
		{"a class with all fields", pod("heavy"), pod("heavy", heavy), "", other},
		{"the Pod has the fields already", pod("heavy", heavy), pod("heavy", heavy), "", ""},
		{"another overhead", pod("heavy", tooMuch), pod("heavy", tooMuch), other, other},
		{"another label", pod("heavy", selects("os")), pod("heavy", selects("os")), conflict, other},
		{"more labels", pod("heavy", selects("vm")), pod("heavy", heavy, selects("vm")), "", other},
		{"no such class", pod("gone"), pod("gone"), notFound, notFound},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			decision, after := gallerytest.Call(t, hooks(t)[0], row.pod, nil)
			gallerytest.Denied(t, decision, row.mutating)
			if !equality.Semantic.DeepEqual(after.Spec, row.want.Spec) {
				t.Errorf("got %+v", after.Spec)
			}
			decision, _ = gallerytest.Call(t, hooks(t)[1], row.pod, nil)
			gallerytest.Denied(t, decision, row.validating)
		})
	}
	for _, hook := range hooks(t) {
		if got := gallerytest.Fails(t, hook, pod("unreadable"), nil); got != "reading runtimeclasses unreadable: timed out" {
			t.Errorf("got %q", got)
		}
	}
}

func TestIdempotent(t *testing.T) {
	gallerytest.Idempotent(t, func() *webhook.Hook { return hooks(t)[0] }, pod("heavy"), pod("heavy", withOverhead))
}
