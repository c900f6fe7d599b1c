// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"context"
	"crypto/x509"
	"errors"
	"time"
)

// A cluster is what a self-managed source needs of an API server. kubeCluster is the real one.
// Its errors name the object, and tell what to do.
type cluster interface {
	// readSecret returns the Secret of the CA as it is stored now, not from a cache. Without
	// one its version is empty and the error is nil.
	readSecret(context.Context) (secret, error)
	// writeSecret creates the Secret if the version is empty, or else replaces that very
	// version. It returns errConflict when somebody was faster.
	writeSecret(context.Context, secret) error
	// readTarget returns the caBundles of the target as they are stored now, errNoTarget,
	// errNoBundle if the target calls no webhook, or errOthers if it has another owner.
	readTarget(context.Context, Target) (targetState, error)
	// writeTarget has each entry of the state hold the bundle, if the target still has the
	// version of the state, and changes nothing else. It returns errConflict if it has not.
	writeTarget(context.Context, Target, targetState, []byte) error
	// watch calls changed, until ctx is done, some time after the Secret or a target may have
	// changed. It is a help only: the source also looks by itself.
	watch(ctx context.Context, targets []Target, changed func())
	// ahead returns by how much this machine's clock is ahead of the API server's at least, as its
	// last answer told; zero when they agree as far as one can tell.
	ahead() time.Duration
}

var (
	errConflict = errors.New("changed by somebody else in the meantime")
	errNoTarget = errors.New("does not exist")
	errNoBundle = errors.New("there is no caBundle to keep")
	errOthers   = errors.New("belongs to somebody else, so its caBundle is left alone")
)

// callsNobody tells whether an error of readTarget means that no caBundle is needed now.
func callsNobody(err error) bool {
	return errors.Is(err, errNoTarget) || errors.Is(err, errNoBundle)
}

// A secret is a Secret of the cluster, as far as it matters here.
type secret struct {
	version string // its resourceVersion; empty when it does not exist
	data    map[string][]byte
	closed  error // why it cannot be written as it is, found when it was read: that may be months before a write is due
}

// A targetState is what a target holds.
type targetState struct {
	version string        // its resourceVersion
	written time.Time     // when this field manager changed it last, by the server's clock; zero if never
	entries []targetEntry // of the webhooks looked after; one for other kinds
	missing []string      // webhooks to look after that it does not have
	uid     string        // for writeTarget: an object of the same name is another
	applied []targetEntry // for writeTarget: the entries and those of others that it must not lose
}

type targetEntry struct {
	name   string // of the webhook; empty for other kinds
	host   string // that the API server verifies; empty if the object does not say
	bundle []byte
	parsed []*x509.Certificate // see certificates
}
