// SPDX-License-Identifier: Apache-2.0

package k8svalidation

import (
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func checkConfigMap(c *checker, o *corev1.ConfigMap) {
	size := 0
	for key, value := range o.Data {
		size += len(value)
		checkDataKey(c, "data", key)
		if _, twice := o.BinaryData[key]; twice {
			c.invalid(field.NewPath("data").Key(key), key, "duplicate of key present in binaryData")
		}
	}
	for key, value := range o.BinaryData {
		size += len(value)
		checkDataKey(c, "binaryData", key)
	}
	if size > corev1.MaxSecretSize {
		c.add(field.TooLong(field.NewPath(""), "", corev1.MaxSecretSize))
	}
}

func checkDataKey(c *checker, child, key string) {
	if bad := badDataKey(key); bad != nil {
		c.invalid(field.NewPath(child).Key(key), key, bad...)
	}
}

func checkSecret(c *checker, o *corev1.Secret) {
	size := 0
	for key, value := range o.Data {
		size += len(value)
		checkDataKey(c, "data", key)
	}
	for key := range o.StringData {
		checkDataKey(c, "data", key)
	}
	if size > corev1.MaxSecretSize {
		c.add(field.TooLong(field.NewPath("data"), "", corev1.MaxSecretSize))
	}
	checkSecretType(c, o)
}

// checkSecretType checks that a Secret has the data that its type requires.
func checkSecretType(c *checker, o *corev1.Secret) {
	has := func(key string) bool {
		_, data := o.Data[key]
		_, text := o.StringData[key]
		return data || text
	}
	need := func(keys ...string) {
		for _, key := range keys {
			if !has(key) {
				c.required(field.NewPath("data").Key(key), "")
			}
		}
	}
	document := func(key string) {
		need(key)
		if o.StringData == nil && has(key) && json.Unmarshal(o.Data[key], new(map[string]any)) != nil {
			c.invalid(field.NewPath("data").Key(key), "<secret contents redacted>", "must be a JSON object")
		}
	}
	switch o.Type {
	case corev1.SecretTypeServiceAccountToken:
		if o.Annotations[corev1.ServiceAccountNameKey] == "" {
			c.required(metadataPath.Child("annotations").Key(corev1.ServiceAccountNameKey), "")
		}
	case corev1.SecretTypeDockercfg:
		document(corev1.DockerConfigKey)
	case corev1.SecretTypeDockerConfigJson:
		document(corev1.DockerConfigJsonKey)
	case corev1.SecretTypeBasicAuth:
		if !has(corev1.BasicAuthUsernameKey) && !has(corev1.BasicAuthPasswordKey) {
			need(corev1.BasicAuthUsernameKey, corev1.BasicAuthPasswordKey)
		}
	case corev1.SecretTypeSSHAuth:
		need(corev1.SSHAuthPrivateKey)
	case corev1.SecretTypeTLS:
		need(corev1.TLSCertKey, corev1.TLSPrivateKeyKey)
	}
}

func checkClaimSpec(c *checker, at *field.Path, spec *corev1.PersistentVolumeClaimSpec) {
	modes := []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce, corev1.ReadOnlyMany, corev1.ReadWriteMany, corev1.ReadWriteOncePod}
	if len(spec.AccessModes) == 0 {
		c.required(at.Child("accessModes"), "at least 1 access mode is required")
	}
	for _, mode := range spec.AccessModes {
		if !slices.Contains(modes, mode) {
			c.add(field.NotSupported(at.Child("accessModes"), mode, modes))
		} else if mode != corev1.ReadWriteOncePod && slices.Contains(spec.AccessModes, corev1.ReadWriteOncePod) {
			c.forbidden(at.Child("accessModes"), "may not use ReadWriteOncePod with other access modes")
		}
	}
	storage, ok := spec.Resources.Requests[corev1.ResourceStorage]
	if !ok {
		c.required(at.Child("resources").Key("storage"), "")
	} else if storage.Sign() <= 0 {
		c.invalid(at.Child("resources").Key("storage"), storage.String(), "must be greater than zero")
	}
	if name := spec.StorageClassName; name != nil && *name != "" {
		c.invalid(at.Child("storageClassName"), *name, badSubdomain(*name)...)
	}
	enumIf(c, at, "volumeMode", spec.VolumeMode, corev1.PersistentVolumeFilesystem, corev1.PersistentVolumeBlock)
	c.selector(at.Child("selector"), spec.Selector)
}

func checkNamespace(c *checker, o *corev1.Namespace) {
	if o.Namespace != "" {
		c.forbidden(metadataPath.Child("namespace"), "not allowed on this type")
	}
}
