// SPDX-License-Identifier: Apache-2.0

package k8svalidation

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// A nameRule validates the names of a kind. Most kinds also reject an invalid generateName.
type nameRule struct {
	bad    func(string) []string
	prefix bool
}

var (
	labelName     = nameRule{badLabel, true}
	subdomainName = nameRule{badSubdomain, true}
)

var metadataPath = field.NewPath("metadata")

func (c *checker) metadata(m *metav1.ObjectMeta, rule nameRule) {
	at := metadataPath
	c.name(at, m, rule)
	if m.Namespace != "" {
		c.invalid(at.Child("namespace"), m.Namespace, badLabel(m.Namespace)...)
	}
	c.notNegative(at, "generation", m.Generation)
	c.labelsAndAnnotations(at, m)
	c.references(at, m)
}

// references checks owner references and finalizers.
func (c *checker) references(at *field.Path, m *metav1.ObjectMeta) {
	if len(m.OwnerReferences) > 0 {
		c.errs = append(c.errs, apivalidation.ValidateOwnerReferences(distinct(m.OwnerReferences), at.Child("ownerReferences"))...)
	}
	if len(m.Finalizers) > 0 {
		c.finalizers(at.Child("finalizers"), m.Finalizers)
	}
}

func (c *checker) name(at *field.Path, m *metav1.ObjectMeta, rule nameRule) {
	switch {
	case m.Name != "":
		if bad := rule.bad(m.Name); bad != nil {
			c.invalid(at.Child("name"), m.Name, bad...)
		}
	case m.GenerateName == "":
		c.required(at.Child("name"), "name or generateName is required")
	default:
		c.generateName(at.Child("generateName"), m.GenerateName, rule)
	}
}

func (c *checker) generateName(at *field.Path, prefix string, rule nameRule) {
	const kept, suffix = 58, "x5x5x"
	bad := rule.bad(prefix[:min(kept, len(prefix))] + suffix)
	if bad == nil && rule.prefix {
		bad = rule.bad(begun(prefix))
	}
	c.invalid(at, prefix, bad...)
}

// begun returns a valid name that begins like the prefix, as apimachinery does to validate generateName.
func begun(prefix string) string {
	if n := len(prefix); n > 1 && prefix[n-1] == '-' {
		return prefix[:n-2] + "a"
	}
	return prefix
}

func (c *checker) labelsAndAnnotations(at *field.Path, m *metav1.ObjectMeta) {
	c.labels(at, "labels", m.Labels)
	c.annotations(at, m.Annotations)
}

func (c *checker) labels(at *field.Path, child string, labels map[string]string) {
	for key, value := range labels {
		if bad := badLabelKey(key); bad != nil {
			c.invalid(at.Child(child), key, bad...)
		}
		if bad := badLabelValue(value); bad != nil {
			c.invalid(at.Child(child).Key(key), value, bad...)
		}
	}
}

func (c *checker) annotations(at *field.Path, annotations map[string]string) {
	size := 0
	for key, value := range annotations {
		size += len(key) + len(value)
		if bad := badLabelKey(key); bad != nil {
			c.invalid(at.Child("annotations"), key, badLabelKey(strings.ToLower(key))...)
		}
	}
	if size > apivalidation.TotalAnnotationSizeLimitB {
		c.add(field.TooLong(at.Child("annotations"), "", apivalidation.TotalAnnotationSizeLimitB))
	}
}

// distinct removes duplicate owners, as the API server does.
func distinct(owners []metav1.OwnerReference) []metav1.OwnerReference {
	list := owners[:0:0]
	for _, owner := range owners {
		if !slices.ContainsFunc(list, func(o metav1.OwnerReference) bool { return equality.Semantic.DeepEqual(o, owner) }) {
			list = append(list, owner)
		}
	}
	return list
}

func (c *checker) finalizers(at *field.Path, names []string) {
	c.errs = append(c.errs, apivalidation.ValidateFinalizers(names, at)...)
	for i, name := range names {
		if strings.Contains(name, "/") {
			continue
		}
		switch name {
		case "kubernetes", metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents:
		default:
			c.invalid(at.Index(i), name, "name is neither a standard finalizer name nor is it fully qualified")
		}
	}
}
