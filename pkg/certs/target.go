// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"github.com/admitkit/admitkit/pkg/certs/internal/kube"
)

// A Target is an object with caBundle fields that a [SelfManaged] source keeps.
type Target struct {
	Kind TargetKind
	Name string
	// Webhooks names the webhooks of a configuration that are looked after; empty means all of
	// them. Not used for other kinds, which have one caBundle.
	Webhooks []string
	// OwnerAnnotation and Owner tell whose object it is. One that has this annotation, with
	// another value, belongs to somebody else who took the same name: it is not written, and a
	// source that was never ready is not ready if it has no other. When they are empty everything
	// is taken as ours.
	OwnerAnnotation, Owner string
}

// A TargetKind is a kind of object with a caBundle.
type TargetKind string

// The kinds of a Target, at the versions v1 that every API server of today serves.
const (
	MutatingWebhookConfiguration   TargetKind = "MutatingWebhookConfiguration"
	ValidatingWebhookConfiguration TargetKind = "ValidatingWebhookConfiguration"
	CustomResourceDefinition       TargetKind = "CustomResourceDefinition" // its conversion webhook
	APIService                     TargetKind = "APIService"
)

func (t Target) String() string { return string(t.Kind) + " " + t.Name }

// object is the target as package kube names it.
func (t Target) object() kube.Target {
	return kube.Target{Kind: string(t.Kind), Name: t.Name, Webhooks: t.Webhooks, OwnerAnnotation: t.OwnerAnnotation, Owner: t.Owner}
}

func targetObjects(targets []Target) []kube.Target {
	var all []kube.Target
	for _, t := range targets {
		all = append(all, t.object())
	}
	return all
}
