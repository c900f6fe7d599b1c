// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of Database.
var GroupVersion = schema.GroupVersion{Group: "db.example.com", Version: "v1"}

// AddToScheme registers Database in a scheme.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &Database{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}

// DeepCopyObject implements runtime.Object.
func (d *Database) DeepCopyObject() runtime.Object {
	c := *d
	c.ObjectMeta = *d.ObjectMeta.DeepCopy()
	c.Spec = d.Spec.deepCopy()
	c.Status.Conditions = copied(d.Status.Conditions, func(c metav1.Condition) metav1.Condition { return *c.DeepCopy() })
	return &c
}

func (s DatabaseSpec) deepCopy() DatabaseSpec {
	s.Replicas = pointer(s.Replicas)
	s.Storage.Size = s.Storage.Size.DeepCopy()
	s.Storage.StorageClassName = pointer(s.Storage.StorageClassName)
	s.Resources = *s.Resources.DeepCopy()
	s.Tolerations = slices.Clone(s.Tolerations)
	for i := range s.Tolerations {
		s.Tolerations[i].TolerationSeconds = pointer(s.Tolerations[i].TolerationSeconds)
	}
	s.NodeSelector, s.Parameters = maps.Clone(s.NodeSelector), maps.Clone(s.Parameters)
	s.MaxUnavailable = pointer(s.MaxUnavailable)
	s.Users = copied(s.Users, User.deepCopy)
	s.Backups = slices.Clone(s.Backups)
	return s
}

func (u User) deepCopy() User {
	u.Databases = slices.Clone(u.Databases)
	u.Grants = copied(u.Grants, func(g Grant) Grant {
		g.Privileges = slices.Clone(g.Privileges)
		return g
	})
	u.PasswordFrom = u.PasswordFrom.DeepCopy()
	u.ConnectionLimit = pointer(u.ConnectionLimit)
	u.ValidUntil = u.ValidUntil.DeepCopy()
	u.Labels = maps.Clone(u.Labels)
	return u
}

func pointer[T any](p *T) *T {
	if p == nil {
		return nil
	}
	return new(*p)
}

func copied[T any](list []T, one func(T) T) []T {
	if list == nil {
		return nil
	}
	c := make([]T, len(list))
	for i := range list {
		c[i] = one(list[i])
	}
	return c
}
