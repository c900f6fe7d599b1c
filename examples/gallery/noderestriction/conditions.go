// SPDX-License-Identifier: Apache-2.0

package noderestriction

import (
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

// The conditions under which the API server calls the hooks. The handlers check the user again, because a cluster
// administrator can change the configuration. The conditions that begin with "not" leave out requests that nodes need
// while the webhook is down. The handlers would admit all of these.
var (
	sentByNode = admissionregistrationv1.MatchCondition{
		Name:       "sent-by-node",
		Expression: `request.userInfo.username.startsWith("system:node:") && has(request.userInfo.groups) && "system:nodes" in request.userInfo.groups`,
	}
	sentByUnnamedNode = admissionregistrationv1.MatchCondition{
		Name:       "sent-by-unnamed-node",
		Expression: `request.userInfo.username == "system:node:" && has(request.userInfo.groups) && "system:nodes" in request.userInfo.groups`,
	}
	notItsLease        = not("not-its-lease", `request.resource.resource == "leases" && request.namespace == "kube-node-lease"`)
	notItsCSINode      = not("not-its-csinode", `request.resource.resource == "csinodes"`)
	notItsRegistration = not("not-its-registration", `request.resource.resource == "nodes" && request.operation == "CREATE"`,
		`!object.?spec.?configSource.hasValue()`, `object.?metadata.?labels.orValue({}).all(key, `+usualLabel+`)`)
	notItsStatus = not("not-its-status", `request.resource.resource == "nodes" && request.operation == "UPDATE"`,
		same("metadata.?labels"), same("metadata.?ownerReferences"), same("spec.?taints"), same("spec.?configSource"))
)

// usualLabel is true for labels outside of the domains of Kubernetes, and for those that a kubelet sets by default.
var usualLabel = `!key.contains("kubernetes.io") && !key.contains("k8s.io") || key in ["` + strings.Join(kubeletLabels, `", "`) + `"]`

// not returns a condition that is false for requests for the node's own object that meet all of these conditions.
func not(name string, conditions ...string) admissionregistrationv1.MatchCondition {
	const own = `request.userInfo.username == "system:node:" + (request.operation == "CREATE" ? object.?metadata.?name.orValue("") : request.name)`
	return admissionregistrationv1.MatchCondition{Name: name, Expression: "!(" + strings.Join(append(conditions, own), " && ") + ")"}
}

// same returns a condition that is true if the old object has the same value of a field.
func same(field string) string { return "object.?" + field + " == oldObject.?" + field }
