// SPDX-License-Identifier: Apache-2.0

package install

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A sort is the kind of a configuration: mutating or validating.
type sort string

const (
	mutating   sort = "mutating"
	validating sort = "validating"
)

var sorts = []sort{mutating, validating}

var (
	configurations = map[sort]schema.GroupVersionResource{
		mutating:   {Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingwebhookconfigurations"},
		validating: {Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations"},
	}
	leases      = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}
	namespaces  = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
)

var kindOf = map[sort]string{mutating: "MutatingWebhookConfiguration", validating: "ValidatingWebhookConfiguration"}

const (
	revisionAnnotation = "install.admitkit.dev/revision" // Options.Revision
	ownerAnnotation    = "install.admitkit.dev/owner"    // Options.owner
)
