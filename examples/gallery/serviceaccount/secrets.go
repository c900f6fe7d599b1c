// SPDX-License-Identifier: Apache-2.0

package serviceaccount

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/admitkit/admitkit/examples/gallery/references"
)

// notListed returns a message about the first Secret of the Pod that the ServiceAccount does not list, or an empty
// string. Like the original, it checks the environment of containers, volumes of the type secret, and pull secrets.
func notListed(account *corev1.ServiceAccount, spec *corev1.PodSpec) string {
	listed := mountable(account)
	for _, v := range spec.Volumes {
		if v.Secret != nil && !listed.Has(v.Secret.SecretName) {
			return fmt.Sprintf(`volume with secret.secretName="%s" %s`, v.Secret.SecretName, refusal(account, "secret"))
		}
	}
	for _, c := range spec.InitContainers {
		if reason := notListedIn(c, "init container", account, listed); reason != "" {
			return reason
		}
	}
	for _, c := range spec.Containers {
		if reason := notListedIn(c, "container", account, listed); reason != "" {
			return reason
		}
	}
	pull := sets.New(account.ImagePullSecrets...)
	for i, ref := range spec.ImagePullSecrets {
		if !pull.Has(ref) {
			return fmt.Sprintf(`imagePullSecrets[%d].name="%s" %s`, i, ref.Name, refusal(account, "imagePullSecret"))
		}
	}
	return ""
}

// notListedEphemeral is notListed for the ephemeral containers of the Pod.
func notListedEphemeral(account *corev1.ServiceAccount, spec *corev1.PodSpec) string {
	listed := mountable(account)
	for _, c := range spec.EphemeralContainers {
		if reason := notListedIn(corev1.Container(c.EphemeralContainerCommon), "ephemeral container", account, listed); reason != "" {
			return reason
		}
	}
	return ""
}

// notListedIn is notListed for the environment of a container.
func notListedIn(c corev1.Container, kind string, account *corev1.ServiceAccount, listed sets.Set[string]) string {
	for _, env := range c.Env {
		if from := env.ValueFrom; from != nil && from.SecretKeyRef != nil && !listed.Has(from.SecretKeyRef.Name) {
			return fmt.Sprintf(`%s %s with envVar %s referencing secret.secretName="%s" %s`, kind, c.Name, env.Name, from.SecretKeyRef.Name, refusal(account, "secret"))
		}
	}
	for _, from := range c.EnvFrom {
		if from.SecretRef != nil && !listed.Has(from.SecretRef.Name) {
			return fmt.Sprintf(`%s %s with envFrom referencing secret.secretName="%s" %s`, kind, c.Name, from.SecretRef.Name, refusal(account, "secret"))
		}
	}
	return ""
}

// mountable returns the names of the Secrets that the ServiceAccount lists.
func mountable(account *corev1.ServiceAccount) sets.Set[string] {
	names := sets.New[string]()
	for _, ref := range account.Secrets {
		names.Insert(ref.Name)
	}
	return names
}

func refusal(account *corev1.ServiceAccount, what string) string {
	return fmt.Sprintf("is not allowed because service account %s does not reference that %s", account.Name, what)
}

// notForMirrors returns a message about a field that a mirror Pod must not have, or an empty string.
func notForMirrors(spec *corev1.PodSpec) string {
	switch {
	case spec.ServiceAccountName != "":
		return "a mirror pod may not reference service accounts"
	case references.HasSecret(spec):
		return "a mirror pod may not reference secrets"
	}
	for _, v := range spec.Volumes {
		if v.Projected == nil {
			continue
		}
		for _, source := range v.Projected.Sources {
			if source.ServiceAccountToken != nil {
				return "a mirror pod may not use ServiceAccountToken volume projections"
			}
		}
	}
	return ""
}
