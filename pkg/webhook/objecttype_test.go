// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"fmt"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/admitkit/admitkit/pkg/webhook"
)

// A withoutDeepCopy is the Go type of a custom resource without a generated DeepCopyObject.
type withoutDeepCopy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
}

func TestAnAPITypeWithoutDeepCopyObjectIsRefused(t *testing.T) {
	const refusal = "webhook any.example.com: webhook_test.withoutDeepCopy has TypeMeta and ObjectMeta like an API type, but no method DeepCopyObject, so its kind is not known; " +
		"generate the method, or name the kinds with WithKinds, or leave TypeMeta out if this is a projection"
	hook := forAny[withoutDeepCopy](everything...)
	want(t, fmt.Sprint(hook.Check()), refusal)
	want(t, fmt.Sprint(hook.WithKinds().Check()), refusal)
	want(t, ask(t, hook, call{}).failed(t).Message, "the registration of the hook is invalid: "+refusal)

	named := hook.WithKinds(gvk("/v1/Pod"))
	if err := named.Check(); err != nil {
		t.Error(err)
	}
	ask(t, named, call{}).allowed(t, call{}, false)
	want(t, ask(t, named, call{kind: "/v1/Node"}).failed(t).Message, "the hook handles kind Pod (v1), not kind Node (v1)")
	want(t, fmt.Sprint(hook.Check()), refusal)
	want(t, fmt.Sprint(named.WithKinds().Check()), refusal)
}

// node is a recursive type.
type node struct {
	Children []*node           `json:"children,omitempty"`
	Named    map[string]node   `json:"named,omitempty"`
	Numbered map[int][2]string `json:"numbered,omitempty"`
}

// A panickingCodec has its own JSON methods, so its fields must not be checked. The methods panic, so the check must
// not call them.
type panickingCodec struct{ Done chan int }

func (panickingCodec) MarshalJSON() ([]byte, error) { panic("not now") }
func (*panickingCodec) UnmarshalJSON([]byte) error  { panic("not now") }

// named has a field with the JSON name metadata. In a struct that embeds named, the field has the same name.
type named struct {
	metav1.ObjectMeta `json:"metadata"`
}

func TestTypesThatJSONCannotEncode(t *testing.T) {
	hook := func(text string) string {
		return "webhook any.example.com: the handler takes a Request[" + text
	}
	const nameless = "would be in the wrong place in JSON; give it the tag `json:\"metadata\"`"
	const noPlace = "give it the tag `json:\"-\"`"
	type rootless struct{ metav1.ObjectMeta }
	type inlined struct {
		metav1.ObjectMeta `json:",inline"`
	}
	type inTemplate struct {
		Spec struct {
			Template struct{ *metav1.ObjectMeta } `json:"template"`
		} `json:"spec"`
	}
	type capital struct{ Metadata metav1.ObjectMeta }
	type channel struct {
		Spec []struct {
			Done *chan int `json:"done,omitempty"`
		} `json:"spec"`
		Call func() `json:"call"`
	}
	type key struct{ Votes map[bool]int }
	for _, in := range []struct {
		reason string
		hook   *webhook.Hook
		want   string // the error; empty if T is valid
	}{
		{"metadata at the root", forAny[rootless](everything...), hook("webhook_test.rootless], but its field ObjectMeta " + nameless)},
		{"with a tag that does not help", forAny[inlined](everything...), hook("webhook_test.inlined], but its field ObjectMeta " + nameless)},
		{"deep inside, by a pointer", forAny[inTemplate](everything...), hook("webhook_test.inTemplate], but its field Spec.Template.ObjectMeta " + nameless)},
		{"a field with a capital letter in JSON", forAny[capital](everything...), hook("webhook_test.capital], but its field Metadata " + nameless)},
		{
			"a channel and a function", forAny[channel](everything...),
			hook("webhook_test.channel], but JSON cannot hold its field Spec[].Done, a chan int; ") + noPlace + "\n" +
				hook("webhook_test.channel], but JSON cannot hold its field Call, a func(); ") + noPlace,
		},
		{"a map without names", forAny[key](everything...), hook("webhook_test.key], but JSON cannot hold its field Votes, a map[bool]int; ") + noPlace},
		{"fields that JSON ignores", forAny[struct {
			Done  chan int `json:"-"`
			mutex sync.Mutex
			call  func()
		}](everything...), ""},
		{"types with their own JSON methods", forAny[struct {
			Touchy panickingCodec       `json:"panickingCodec"`
			Raw    runtime.RawExtension `json:"raw"`
			Any    any                  `json:"any"`
		}](everything...), ""},
		{"a type that is part of itself", forAny[node](everything...), ""},
		{"metadata in an embedded struct", forAny[struct{ named }](everything...), ""},
		{"metadata with a name", forAny[struct {
			metav1.ObjectMeta `json:"metadata"`
		}](everything...), ""},
		{"the kind and no metadata", forAny[struct {
			metav1.TypeMeta `json:",inline"`
		}](everything...), ""},
		{"a built-in type", forAny[corev1.Pod](everything...), ""},
		{"another", forAny[appsv1.Deployment](everything...), ""},
		{"a custom resource", forAny[Widget](everything...), ""},
		{"metadata alone", forAny[metav1.PartialObjectMetadata](everything...), ""},
		{"maps", forAny[unstructured.Unstructured](everything...), ""},
	} {
		row(t, in.reason, func(t *testing.T) {
			err := in.hook.Check()
			if in.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if want(t, fmt.Sprint(err), in.want); err == nil {
				return
			}
			want(t, ask(t, in.hook, call{}).failed(t).Message, "the registration of the hook is invalid: "+in.want)
		})
	}
}
