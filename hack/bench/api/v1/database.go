// SPDX-License-Identifier: Apache-2.0

// Package v1 has a custom resource of medium size, typical for operators.
package v1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// A Database is a cluster of database servers.
type Database struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              DatabaseSpec   `json:"spec"`
	Status            DatabaseStatus `json:"status,omitempty"`
}

// DatabaseSpec is the desired state.
type DatabaseSpec struct {
	Image          string                      `json:"image"`
	Replicas       *int32                      `json:"replicas,omitempty"`
	Paused         bool                        `json:"paused,omitempty"`
	Storage        Storage                     `json:"storage"`
	Resources      corev1.ResourceRequirements `json:"resources,omitempty"`
	Tolerations    []corev1.Toleration         `json:"tolerations,omitempty"`
	NodeSelector   map[string]string           `json:"nodeSelector,omitempty"`
	Parameters     map[string]string           `json:"parameters,omitempty"`
	MaxUnavailable *intstr.IntOrString         `json:"maxUnavailable,omitempty"`
	Users          []User                      `json:"users,omitempty"`
	Backups        []Backup                    `json:"backups,omitempty"`
}

// Storage is the volume of each server.
type Storage struct {
	Size             resource.Quantity `json:"size"`
	StorageClassName *string           `json:"storageClassName,omitempty"`
}

// A User is an account in the database.
type User struct {
	Name            string                    `json:"name"`
	Databases       []string                  `json:"databases,omitempty"`
	Grants          []Grant                   `json:"grants,omitempty"`
	PasswordFrom    *corev1.SecretKeySelector `json:"passwordFrom,omitempty"`
	ConnectionLimit *int32                    `json:"connectionLimit,omitempty"`
	ValidUntil      *metav1.Time              `json:"validUntil,omitempty"`
	Labels          map[string]string         `json:"labels,omitempty"`
}

// A Grant is a permission of a user on an object.
type Grant struct {
	On         string   `json:"on"`
	Privileges []string `json:"privileges"`
}

// A Backup has the schedule and retention of backups.
type Backup struct {
	Name      string          `json:"name"`
	Schedule  string          `json:"schedule"`
	Retention metav1.Duration `json:"retention"`
	Bucket    string          `json:"bucket,omitempty"`
}

// DatabaseStatus is the observed state.
type DatabaseStatus struct {
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	ReadyReplicas      int32              `json:"readyReplicas,omitempty"`
	Primary            string             `json:"primary,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
}
