// SPDX-License-Identifier: Apache-2.0

package decodetest

import (
	"encoding/json"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// oddTypes returns types with properties that custom resources may have and built-in types lack. Types with tags that
// go vet rejects come from [randomType].
func oddTypes() []reflect.Type {
	return []reflect.Type{
		reflect.TypeFor[any](), reflect.TypeFor[[]any](), reflect.TypeFor[map[string]any](),
		reflect.TypeFor[[]map[string]any](), reflect.TypeFor[**widget](), reflect.TypeFor[*any](),
		reflect.TypeFor[unstructured.Unstructured](), reflect.TypeFor[unstructured.UnstructuredList](),
		reflect.TypeFor[runtime.RawExtension](), reflect.TypeFor[json.RawMessage](), reflect.TypeFor[json.Number](),
		reflect.TypeFor[resource.Quantity](), reflect.TypeFor[metav1.Time](), reflect.TypeFor[string](), reflect.TypeFor[[]byte](),
		reflect.TypeFor[widget](), reflect.TypeFor[unfit](), reflect.TypeFor[names](), reflect.TypeFor[podView](),
		reflect.TypeFor[embedsPlain](), reflect.TypeFor[embedsShadowed](), reflect.TypeFor[embedsPointer](), reflect.TypeFor[embedsTagged](),
		reflect.TypeFor[embedsHidden](), reflect.TypeFor[embedsShown](), reflect.TypeFor[embedsWord](), reflect.TypeFor[embedsInterface](),
		reflect.TypeFor[embedsLost](), reflect.TypeFor[nameless](), reflect.TypeFor[shadows](), reflect.TypeFor[diamond](), reflect.TypeFor[tagWins](),
		reflect.TypeFor[loop](), reflect.TypeFor[promoted](), reflect.TypeFor[promotedText](), reflect.TypeFor[ambiguous](),
		reflect.TypeFor[tree](), reflect.TypeFor[ping](), reflect.TypeFor[nest](), reflect.TypeFor[nestMap](),
	}
}

// A widget is a typical custom resource.
type widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   widgetSpec    `json:"spec"`
	Status *widgetStatus `json:"status,omitempty"`
}

type widgetSpec struct {
	Replicas   *int32                     `json:"replicas,omitempty"`
	Port       intstr.IntOrString         `json:"port"`
	MaxSurge   *intstr.IntOrString        `json:"maxSurge,omitempty"`
	Size       resource.Quantity          `json:"size"`
	Least      *resource.Quantity         `json:"least,omitempty"`
	Limits     corev1.ResourceList        `json:"limits,omitempty"`
	Steps      []widgetStep               `json:"steps"`
	Selector   *metav1.LabelSelector      `json:"selector"`
	Template   runtime.RawExtension       `json:"template"`
	Extras     []runtime.RawExtension     `json:"extras,omitempty"`
	Values     map[string]json.RawMessage `json:"values,omitempty"`
	Containers []corev1.Container         `json:"containers,omitempty"`
	PodSpec    *corev1.PodTemplateSpec    `json:"podSpec,omitempty"`
	Window     window                     `json:"window,omitzero"`
	Free       map[string]any             `json:"free,omitempty"`
	Fields     *metav1.FieldsV1           `json:"fields,omitempty"`
	Phase      phase                      `json:"phase,omitempty"`
}

type widgetStep struct {
	Name    string            `json:"name"`
	Env     map[string]string `json:"env,omitempty"`
	Args    []string          `json:"args,omitempty"`
	Timeout metav1.Duration   `json:"timeout,omitzero"`
	Next    *widgetStep       `json:"next,omitempty"`
	On      bool              `json:"on,omitempty"`
}

type widgetStatus struct {
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	Observed   int64              `json:"observed,omitempty"`
}

type window struct {
	From metav1.Time       `json:"from,omitzero"`
	To   *metav1.Time      `json:"to,omitempty"`
	At   *metav1.MicroTime `json:"at,omitempty"`
}

type phase string

type (
	tinyInt int8
	flag    bool
	ratio   float32
)

type (
	letter  byte
	blob    []byte
	letters []letter
)

type part struct {
	Kind   string            `json:"kind"`
	Weight int32             `json:"weight,omitempty"`
	On     *bool             `json:"on,omitempty"`
	Tags   []string          `json:"tags,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`
	Pair   [2]int8           `json:"pair,omitzero"`
	Any    any               `json:"any,omitempty"`
	Part   *part             `json:"part,omitempty"`
}

// anything is a named interface without methods.
type anything interface{}

// unfit has fields that accept only null, and fields that a decoder ignores.
type unfit struct {
	Chan    chan int     `json:"chan,omitzero"`
	Func    func()       `json:"func,omitzero"`
	Complex complex128   `json:"complex,omitzero"`
	Chans   []chan int   `json:"chans,omitempty"`
	Ref     *chan int    `json:"ref,omitempty"`
	Hidden  string       `json:"-"`
	private string       //nolint:unused // that nothing sets it is its purpose
	_       [0]chan bool // also ignored
	Last    string       `json:"last"`
}
