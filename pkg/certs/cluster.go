// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"context"
	"time"

	"github.com/admitkit/admitkit/pkg/certs/internal/kube"
)

// A cluster has the operations of an API server that a self-managed source needs. It is a kube.Client, or a fake in
// tests. Its errors name the object and the remedy.
type cluster interface {
	// ReadSecret returns the stored Secret of the CA, not a cached one. If there is none, its
	// version is empty and the error is nil.
	ReadSecret(context.Context) (kube.Secret, error)
	// WriteSecret creates the Secret if the version is empty, or else replaces that version. It
	// returns kube.ErrConflict if the Secret was changed in the meantime.
	WriteSecret(context.Context, kube.Secret) error
	// ReadTarget returns the stored caBundles of the target. The error is kube.ErrNoTarget if the target does not
	// exist, kube.ErrNoBundle if it needs no caBundle, or kube.ErrOtherOwner if it belongs to another installation.
	ReadTarget(context.Context, kube.Target) (kube.TargetState, error)
	// WriteTarget sets the caBundle of each entry of the state, and changes nothing else. It returns
	// kube.ErrConflict if the target was changed since it was read.
	WriteTarget(context.Context, kube.Target, kube.TargetState, []byte) error
	// Watch calls changed some time after the Secret or a target may have changed, until ctx is
	// done. It may miss changes, so the source also checks the objects at every interval.
	Watch(ctx context.Context, targets []kube.Target, changed func())
	// Ahead returns the least difference by which this machine's clock is ahead of the API server's,
	// according to the last response; negative if it is behind, zero if the two may agree.
	Ahead() time.Duration
}
