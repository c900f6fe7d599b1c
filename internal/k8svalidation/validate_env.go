// SPDX-License-Identifier: Apache-2.0

package k8svalidation

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// environment checks the environment variables of a container. A name may repeat, and then the last value counts.
func (p *containerCheck) environment() {
	at, c := p.path, p.container
	for i := range c.Env {
		e := &c.Env[i]
		if e.Name == "" {
			p.required(at.Child("env").Index(i).Child("name"), "")
		} else if bad := badEnvName(e.Name); bad != nil {
			p.invalid(at.Child("env").Index(i).Child("name"), e.Name, bad...)
		}
		if e.ValueFrom != nil {
			p.envSource(at.Child("env").Index(i).Child("valueFrom"), e)
		}
	}
	for i := range c.EnvFrom {
		p.envFrom(at.Child("envFrom").Index(i), &c.EnvFrom[i])
	}
}

func (p *containerCheck) envSource(at *field.Path, e *corev1.EnvVar) {
	from := e.ValueFrom
	n := 0
	if from.FieldRef != nil {
		n++
		p.fieldRef(at.Child("fieldRef"), from.FieldRef, envFields)
	}
	if from.ResourceFieldRef != nil {
		n++
		p.resourceRef(at.Child("resourceFieldRef"), from.ResourceFieldRef)
	}
	if ref := from.ConfigMapKeyRef; ref != nil {
		n++
		p.keyRef(at.Child("configMapKeyRef"), ref.Name, ref.Key)
	}
	if ref := from.SecretKeyRef; ref != nil {
		n++
		p.keyRef(at.Child("secretKeyRef"), ref.Name, ref.Key)
	}
	if from.FileKeyRef != nil {
		n++
	}
	switch {
	case n == 0:
		p.invalid(at, "", "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`")
	case e.Value != "":
		p.invalid(at, "", "may not be specified when `value` is not empty")
	case n > 1:
		p.invalid(at, "", "may not have more than one field specified at a time")
	}
}

func (p *containerCheck) keyRef(at *field.Path, name, key string) {
	if bad := badSubdomain(name); bad != nil {
		p.invalid(at.Child("name"), name, bad...)
	}
	if key == "" {
		p.required(at.Child("key"), "")
	} else if bad := badDataKey(key); bad != nil {
		p.invalid(at.Child("key"), key, bad...)
	}
}

func (p *containerCheck) envFrom(at *field.Path, from *corev1.EnvFromSource) {
	if from.Prefix != "" {
		if bad := badEnvName(from.Prefix); bad != nil {
			p.invalid(at.Child("prefix"), from.Prefix, bad...)
		}
	}
	if from.ConfigMapRef != nil {
		p.envRef(at.Child("configMapRef"), from.ConfigMapRef.Name)
	}
	if from.SecretRef != nil {
		p.envRef(at.Child("secretRef"), from.SecretRef.Name)
	}
	switch {
	case from.ConfigMapRef == nil && from.SecretRef == nil:
		p.invalid(at, "", "must specify one of: `configMapRef` or `secretRef`")
	case from.ConfigMapRef != nil && from.SecretRef != nil:
		p.invalid(at, "", "may not have more than one field specified at a time")
	}
}

// envRef checks the name of a ConfigMap or a Secret by the rule for generateName, as the API server does here.
func (p *containerCheck) envRef(at *field.Path, name string) {
	if name == "" {
		p.required(at.Child("name"), "")
	} else if bad := badSubdomain(begun(name)); bad != nil {
		p.invalid(at.Child("name"), name, bad...)
	}
}

// downwardFields are the fields of a Pod that a container can read from its environment or from files.
var (
	envFields = []string{
		"metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName",
		"status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs", "spec.host",
	}
	fileFields = []string{"metadata.name", "metadata.namespace", "metadata.labels", "metadata.annotations", "metadata.uid"}
)

func (p *podCheck) fieldRef(at *field.Path, ref *corev1.ObjectFieldSelector, fields []string) {
	if ref.FieldPath == "" {
		p.required(at.Child("fieldPath"), "")
		return
	}
	if ref.APIVersion != "" && ref.APIVersion != "v1" {
		p.invalid(at.Child("fieldPath"), ref.FieldPath, "unsupported pod version: "+ref.APIVersion)
		return
	}
	path, subscript, found := strings.Cut(ref.FieldPath, "['")
	if !found || !strings.HasSuffix(subscript, "']") {
		if !slices.Contains(fields, ref.FieldPath) {
			p.add(field.NotSupported(at.Child("fieldPath"), ref.FieldPath, fields))
		}
		return
	}
	key := strings.TrimSuffix(subscript, "']")
	switch path {
	case "metadata.annotations":
		p.invalid(at, key, badLabelKey(strings.ToLower(key))...)
	case "metadata.labels":
		p.invalid(at, key, badLabelKey(key)...)
	default:
		p.invalid(at, path, "does not support subscript")
	}
}

var resourceFields = []string{
	"limits.cpu", "limits.memory", "limits.ephemeral-storage",
	"requests.cpu", "requests.memory", "requests.ephemeral-storage",
}

func (p *podCheck) resourceRef(at *field.Path, ref *corev1.ResourceFieldSelector) {
	switch {
	case ref.Resource == "":
		p.required(at.Child("resource"), "")
	case !slices.Contains(resourceFields, ref.Resource) && !strings.HasPrefix(ref.Resource, "limits.hugepages-") && !strings.HasPrefix(ref.Resource, "requests.hugepages-"):
		p.add(field.NotSupported(at.Child("resource"), ref.Resource, resourceFields))
	case ref.Divisor.Sign() != 0 && !slices.Contains(divisors(ref.Resource), ref.Divisor.String()):
		p.invalid(at.Child("divisor"), ref.Resource, "divisor is not supported with the resource")
	}
}

// divisors returns the valid divisors for a resource.
func divisors(resource string) []string {
	if strings.HasSuffix(resource, ".cpu") {
		return []string{"1m", "1"}
	}
	return []string{"1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"}
}
