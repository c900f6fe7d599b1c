// SPDX-License-Identifier: Apache-2.0

// Package v1 has the Go type of a custom resource, in the layout of controller projects.
package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// A Gadget is the custom resource in version v1.
type Gadget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              GadgetSpec   `json:"spec"`
	Status            GadgetStatus `json:"status,omitempty"`
}

// GadgetSpec is the desired state.
type GadgetSpec struct {
	Color    string `json:"color,omitempty"`
	Replicas int32  `json:"replicas,omitempty"`
	// Notes is missing in the schema in the cluster.
	Notes string `json:"notes,omitempty"`
}

// GadgetStatus is the observed state.
type GadgetStatus struct {
	Phase string `json:"phase,omitempty"`
}

// DeepCopyObject implements runtime.Object.
func (g *Gadget) DeepCopyObject() runtime.Object {
	copied := *g
	g.ObjectMeta.DeepCopyInto(&copied.ObjectMeta)
	return &copied
}
