// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admitkit/admitkit/pkg/webhook"
)

// A Ledger records each namespace that the rules admit.
type Ledger interface {
	// Record stores the entry durably, or returns an error. It may be called several times for
	// one object, with the same UID.
	Record(ctx context.Context, e Entry) error
}

// An Entry records which user created a namespace, and the team that owns the namespace.
type Entry struct {
	UID       types.UID `json:"uid"`
	Namespace string    `json:"namespace"`
	Team      string    `json:"team"`
	User      string    `json:"user"`
}

// validateNamespace requires an owner and records it. If the record cannot be written, the call fails, and
// the failurePolicy decides. A record does not prove that the namespace exists, because a later webhook
// may deny it.
func validateNamespace(ledger Ledger) func(context.Context, *webhook.Request[corev1.Namespace]) error {
	return func(ctx context.Context, req *webhook.Request[corev1.Namespace]) error {
		ns := req.Object
		team := ns.Labels[TeamLabel]
		if team == "" {
			return field.Required(field.NewPath("metadata", "labels").Key(TeamLabel), "set it to the team that is responsible for the namespace")
		}
		return req.SideEffect(func() error { // skipped for a dry run
			return ledger.Record(ctx, Entry{UID: ns.UID, Namespace: ns.Name, Team: team, User: req.UserInfo.Username})
		})
	}
}

// A FileLedger appends each entry as a line of JSON to the file at Path. It creates the file if needed. It is safe for
// concurrent use.
type FileLedger struct {
	Path string
	mu   sync.Mutex
}

// Record returns after the entry was written to disk.
func (l *FileLedger) Record(_ context.Context, e Entry) error {
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	file, err := os.OpenFile(l.Path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("cannot open the ledger: %w", err)
	}
	_, err = file.Write(append(line, '\n'))
	if err == nil {
		err = file.Sync()
	}
	if closeErr := file.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return fmt.Errorf("cannot write the ledger: %w", err)
	}
	return nil
}
