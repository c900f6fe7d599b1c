// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
)

// A retry spaces attempts: each delay is twice the one before, up to the longest, and a random
// part of it is left out.
type retry struct{ first, longest time.Duration }

func (r retry) delay(failures int) time.Duration {
	d := r.longest
	if failures < 32 && r.first<<failures < r.longest {
		d = r.first << failures
	}
	return d/2 + rand.N(d/2+1)
}

// watch returns when ctx is done. It calls changed from several goroutines, also whenever it
// has connected anew, since it may have missed something in between.
func (k *kubeCluster) watch(ctx context.Context, targets []Target, changed func()) {
	places := []place{k.secret()}
	for _, t := range targets {
		if p, err := placeOf(t); err == nil { // else readTarget has said so
			places = append(places, p)
		}
	}
	var watchers sync.WaitGroup
	for _, p := range places {
		watchers.Go(func() { k.watchPlace(ctx, p, changed) })
	}
	watchers.Wait()
	<-ctx.Done()
}

func (k *kubeCluster) watchPlace(ctx context.Context, p place, changed func()) {
	var refused bool // and said so
	for failures := 0; ctx.Err() == nil; failures++ {
		began := time.Now()
		err := k.watchOnce(ctx, p, changed)
		if time.Since(began) > k.retry.longest {
			failures = 0
		}
		if apierrors.IsForbidden(err) {
			failures = 64 // somebody may grant it later
			if !refused {
				refused = true
				contextLogger(ctx).Info("cannot watch: changes are seen later, when they are looked for",
					"object", p.String(), "reason", k.explain(err, "watch", p).Error())
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(k.retry.delay(failures)):
		}
	}
}

// watchOnce returns when the watch has ended, as each does from time to time.
func (k *kubeCluster) watchOnce(ctx context.Context, p place, changed func()) error {
	events, err := k.on(p).Watch(silent(ctx), metav1.ListOptions{
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

// contextLogger returns the logger of ctx, or slog's default.
func contextLogger(ctx context.Context) logr.Logger {
	if log, err := logr.FromContext(ctx); err == nil {
		return log
	}
	return logr.FromSlogHandler(slog.Default().Handler())
}
