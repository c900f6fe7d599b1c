// SPDX-License-Identifier: Apache-2.0

package webhook

import admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

// Rules returns its arguments as a slice, for the field Rules of a registration.
func Rules(rules ...admissionregistrationv1.RuleWithOperations) []admissionregistrationv1.RuleWithOperations {
	return rules
}

// OnCreate returns a rule for CREATE, which includes creation by apply, of resources in one API
// group and version. The core group is "". A resource may be "pods", a subresource such as
// "pods/binding", or a wildcard.
func OnCreate(group, version string, resources ...string) admissionregistrationv1.RuleWithOperations {
	return on(group, version, resources, admissionregistrationv1.Create)
}

// OnUpdate returns a rule for UPDATE, which includes patch, apply and scale.
func OnUpdate(group, version string, resources ...string) admissionregistrationv1.RuleWithOperations {
	return on(group, version, resources, admissionregistrationv1.Update)
}

// OnWrite returns a rule for CREATE and UPDATE.
func OnWrite(group, version string, resources ...string) admissionregistrationv1.RuleWithOperations {
	return on(group, version, resources, admissionregistrationv1.Create, admissionregistrationv1.Update)
}

// OnDelete returns a rule for DELETE, which includes each object of a deletecollection. An eviction is
// a CREATE of pods/eviction instead.
func OnDelete(group, version string, resources ...string) admissionregistrationv1.RuleWithOperations {
	return on(group, version, resources, admissionregistrationv1.Delete)
}

// OnConnect returns a rule for CONNECT: "pods/exec", "pods/attach", "pods/portforward" and the
// proxy subresources.
func OnConnect(group, version string, resources ...string) admissionregistrationv1.RuleWithOperations {
	return on(group, version, resources, admissionregistrationv1.Connect)
}

// OnEverything returns a rule for all operations on all resources and subresources, in all groups and
// versions. The API server still leaves out get, list and watch, and the webhook configurations,
// admission policies and their bindings in admissionregistration.k8s.io
// (IsExemptAdmissionConfigurationResource). Kubernetes 1.37 also leaves out token, subject access and
// self-subject reviews. A namespaceSelector narrows the rule: see [Configurations] for the default one.
func OnEverything() admissionregistrationv1.RuleWithOperations {
	return on("*", "*", []string{"*/*"}, admissionregistrationv1.OperationAll)
}

func on(group, version string, resources []string, ops ...admissionregistrationv1.OperationType) admissionregistrationv1.RuleWithOperations {
	return admissionregistrationv1.RuleWithOperations{
		Operations: ops,
		Rule: admissionregistrationv1.Rule{
			APIGroups: []string{group}, APIVersions: []string{version}, Resources: resources,
		},
	}
}
