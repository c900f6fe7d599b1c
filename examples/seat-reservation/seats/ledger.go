// SPDX-License-Identifier: Apache-2.0

package seats

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A Ledger records in a ConfigMap which Pods have a seat. All replicas share it. The API server rejects a write that is
// based on an older version of the ConfigMap, so two replicas cannot take the same seat.
type Ledger struct {
	Options
	// ConfigMap is the namespace and the name of the ConfigMap. The first write creates it.
	ConfigMap client.ObjectKey
	// Client must read from the API server, not from a cache.
	Client client.Client
}

// entries maps the UID of each Pod that has a seat to its entry.
type entries map[types.UID]entry

type entry struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Expires is the time when a reservation ends. It is zero once the reconciler has seen the stored Pod.
	Expires time.Time `json:"expires,omitzero"`
}

// take gives the Pod a seat, unless the Pod already has one or all seats are taken. It reports whether the Pod has a
// seat now.
func (l *Ledger) take(taken entries, pod *corev1.Pod, expires time.Time) bool {
	if _, has := taken[pod.UID]; has {
		return true
	}
	if len(taken) >= l.Seats {
		return false
	}
	taken[pod.UID] = entry{pod.Namespace, pod.Name, expires}
	return true
}

// change reads the ledger and lets edit change the entries. If they have changed, it calls store with a function that
// writes the ledger. If another client has written the ledger in between, change starts again.
func (l *Ledger) change(ctx context.Context, edit func(entries) error, store func(write func() error) error) error {
	backoff := wait.Backoff{Duration: 10 * time.Millisecond, Factor: 1.2, Jitter: 1, Steps: 20} // about 3 seconds
	outdated := func(err error) bool { return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) }
	return retry.OnError(backoff, outdated, func() error {
		stored := &corev1.ConfigMap{}
		if err := l.Client.Get(ctx, l.ConfigMap, stored); client.IgnoreNotFound(err) != nil {
			return err
		}
		taken := entries{}
		for uid, text := range stored.Data {
			var e entry
			if err := json.Unmarshal([]byte(text), &e); err != nil {
				return fmt.Errorf("ConfigMap %s: entry %s is not valid: %w", l.ConfigMap, uid, err)
			}
			taken[types.UID(uid)] = e
		}
		before := maps.Clone(taken)
		if err := edit(taken); err != nil || maps.Equal(before, taken) {
			return err
		}
		stored.Data = map[string]string{}
		for uid, e := range taken {
			text, err := json.Marshal(e)
			if err != nil {
				return err
			}
			stored.Data[string(uid)] = string(text)
		}
		return store(func() error {
			if stored.ResourceVersion == "" {
				stored.Namespace, stored.Name = l.ConfigMap.Namespace, l.ConfigMap.Name
				return l.Client.Create(ctx, stored)
			}
			return l.Client.Update(ctx, stored)
		})
	})
}
