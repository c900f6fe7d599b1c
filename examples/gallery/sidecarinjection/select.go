// SPDX-License-Identifier: Apache-2.0

package sidecarinjection

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A selection is one way in which a Namespace or a Pod selects the revision. It contains the selectors of its hook.
type selection struct {
	name              string
	namespace, object []metav1.LabelSelectorRequirement
}

// defaultRevision also serves Namespaces and Pods that ask for a proxy and name no revision.
const defaultRevision = "default"

func (c Config) revision() string { return cmp.Or(c.Revision, defaultRevision) }

// selections returns the selections of the revision. No two of them match the same Pod.
func (c Config) selections() []selection {
	all := []selection{{
		name:      "rev.namespace",
		namespace: requirements(in(RevisionLabel, c.revision()), absent(InjectionLabel)),
		object:    requirements(notIn(InjectLabel, "false")),
	}, {
		name:      "rev.object",
		namespace: requirements(absent(RevisionLabel), absent(InjectionLabel)),
		object:    requirements(in(RevisionLabel, c.revision()), notIn(InjectLabel, "false")),
	}}
	if c.revision() != defaultRevision {
		return all
	}
	return append(all, selection{
		name:      "namespace",
		namespace: requirements(in(InjectionLabel, "enabled")),
		object:    requirements(notIn(InjectLabel, "false")),
	}, selection{
		name:      "object",
		namespace: requirements(absent(RevisionLabel), absent(InjectionLabel)),
		object:    requirements(in(InjectLabel, "true"), absent(RevisionLabel)),
	})
}

// notSystem leaves out kube-system, so that a cluster can repair itself while the webhook is down.
var notSystem = notIn(corev1.LabelMetadataName, metav1.NamespaceSystem)

func requirements(all ...metav1.LabelSelectorRequirement) []metav1.LabelSelectorRequirement {
	return all
}

func in(key, value string) metav1.LabelSelectorRequirement {
	return metav1.LabelSelectorRequirement{Key: key, Operator: metav1.LabelSelectorOpIn, Values: []string{value}}
}

func notIn(key, value string) metav1.LabelSelectorRequirement {
	return metav1.LabelSelectorRequirement{Key: key, Operator: metav1.LabelSelectorOpNotIn, Values: []string{value}}
}

func absent(key string) metav1.LabelSelectorRequirement {
	return metav1.LabelSelectorRequirement{Key: key, Operator: metav1.LabelSelectorOpDoesNotExist}
}
