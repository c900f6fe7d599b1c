// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
)

// Watch watches the Secret and the targets until ctx is done. It calls changed from several goroutines: after every
// change, and after every new connection, because a change may have happened without a connection.
func (k *Client) Watch(ctx context.Context, targets []Target, changed func()) {
	places := []objectRef{k.secret()}
	for _, t := range targets {
		places = append(places, objectOf(t))
	}
	var watchers sync.WaitGroup
	for _, p := range places {
		watchers.Go(func() { k.watchObject(ctx, p, changed) })
	}
	watchers.Wait()
	<-ctx.Done()
}

func (k *Client) watchObject(ctx context.Context, p objectRef, changed func()) {
	var refused bool // the missing permission was logged
	for failures := 0; ctx.Err() == nil; failures++ {
		began := time.Now()
		err := k.watchOnce(ctx, p, changed)
		if time.Since(began) > k.retry.longest {
			failures = 0
		}
		if apierrors.IsForbidden(err) {
			failures = 64 // an administrator may grant the permission later
			if !refused {
				refused = true
				logr.FromContextOrDiscard(ctx).Info("cannot watch: changes are found later, by the periodic check",
					"object", p.String(), "reason", k.explain(err, "watch", p).Error())
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(k.retry.delay(failures)):
		}
	}
}

// watchOnce runs one watch until it ends. The API server ends each watch after some time.
func (k *Client) watchOnce(ctx context.Context, p objectRef, changed func()) error {
	events, err := k.on(p).Watch(withoutLogger(ctx), metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("metadata.name", p.name).String(),
	})
	if err != nil {
		return err
	}
	defer events.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case event, open := <-events.ResultChan():
			if !open {
				return nil
			}
			if event.Type == watch.Error {
				return apierrors.FromObject(event.Object)
			}
			changed()
		}
	}
}
