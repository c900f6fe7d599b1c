// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"errors"
	"time"
)

// These are the errors that callers of a Client distinguish.
var (
	// ErrConflict: the object was changed, deleted or created since it was read.
	ErrConflict = errors.New("was changed in the meantime")
	// ErrNoTarget: the target does not exist.
	ErrNoTarget = errors.New("does not exist")
	// ErrNoBundle: the target names no server that the API server calls, so it needs no caBundle.
	ErrNoBundle = errors.New("needs no caBundle")
	// ErrOtherOwner: the target's owner annotation names another installation.
	ErrOtherOwner = errors.New("belongs to another installation, so its caBundle is not changed")
)

// A Secret has the content of the Secret of the CA at one version.
type Secret struct {
	Version string // the resourceVersion; empty if the Secret does not exist
	Data    map[string][]byte
	Closed  error // why the Secret cannot be updated, found when it was read; nil if it can
}

// The kinds of a Target.
const (
	MutatingWebhookConfiguration   = "MutatingWebhookConfiguration"
	ValidatingWebhookConfiguration = "ValidatingWebhookConfiguration"
	CustomResourceDefinition       = "CustomResourceDefinition"
	APIService                     = "APIService"
)

// A Target names an object with caBundle fields. Kind is one of the constants, and Name is not empty.
type Target struct {
	Kind, Name string
	// Webhooks limits a webhook configuration to the webhooks of these names; empty means all.
	Webhooks []string
	// OwnerAnnotation and Owner identify the installation. An object whose annotation has another
	// value is not read. Empty means no check.
	OwnerAnnotation, Owner string
}

func (t Target) String() string { return t.Kind + " " + t.Name }

// A TargetState has the caBundles of a target at one version.
type TargetState struct {
	Version string    // the resourceVersion
	Written time.Time // last change by our field manager, by the server's clock; zero if never
	Entries []Entry   // one for each selected webhook, or a single one for other kinds
	Missing []string  // selected webhooks that the configuration does not have
	uid     string    // WriteTarget refuses another object of the same name
	applied []Entry   // Entries and all others that our field manager owns, in the order of the list
}

// An Entry is one caBundle of a target.
type Entry struct {
	Name   string // of the webhook; empty for other kinds
	Host   string // the name that the API server verifies; empty if the object has none
	Bundle []byte
}
