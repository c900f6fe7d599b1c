// SPDX-License-Identifier: Apache-2.0

package webhook

import admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

// Rules is short for the rules of a registration.
func Rules(rules ...admissionregistrationv1.RuleWithOperations) []admissionregistrationv1.RuleWithOperations {
	return rules
}

// OnCreate returns a rule for CREATE of resources in one API group and version: "" is the core
// group, and a resource may be "pods", a subresource such as "pods/binding", or a wildcard.
// Creates by apply count.
func OnCreate(group, version string, resources ...string) admissionregistrationv1.RuleWithOperations {
	return on(group, version, resources, admissionregistrationv1.Create)
}

// OnUpdate returns a rule for UPDATE, which patch, apply and scale are too.
func OnUpdate(group, version string, resources ...string) admissionregistrationv1.RuleWithOperations {
	return on(group, version, resources, admissionregistrationv1.Update)
}

// OnWrite returns a rule for CREATE and UPDATE.
func OnWrite(group, version string, resources ...string) admissionregistrationv1.RuleWithOperations {
	return on(group, version, resources, admissionregistrationv1.Create, admissionregistrationv1.Update)
}

// OnDelete returns a rule for DELETE, which each item of a deletecollection is too. Eviction is
// not: it is a CREATE of pods/eviction.
func OnDelete(group, version string, resources ...string) admissionregistrationv1.RuleWithOperations {
	return on(group, version, resources, admissionregistrationv1.Delete)
}

// OnConnect returns a rule for CONNECT: "pods/exec", "pods/attach", "pods/portforward" and the
// proxy subresources.
func OnConnect(group, version string, resources ...string) admissionregistrationv1.RuleWithOperations {
	return on(group, version, resources, admissionregistrationv1.Connect)
}

func on(group, version string, resources []string, ops ...admissionregistrationv1.OperationType) admissionregistrationv1.RuleWithOperations {
	return admissionregistrationv1.RuleWithOperations{
		Operations: ops,
		Rule: admissionregistrationv1.Rule{
			APIGroups: []string{group}, APIVersions: []string{version}, Resources: resources,
		},
	}
}
