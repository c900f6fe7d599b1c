// SPDX-License-Identifier: Apache-2.0

// Package eventratelimit reimplements Kubernetes' admission controller EventRateLimit as a hook: it limits how often
// Events can be created and updated, in the whole cluster, or for each namespace, user, or source and object.
//
// The original is k8s.io/kubernetes/plugin/pkg/admission/eventratelimit. The hook differs from it as follows:
//
//   - The rates apply to each replica of the webhook, because replicas do not share buckets. With the original, they
//     apply to each API server. So divide the rates that you want by the number of replicas, not of API servers.
//   - Events in kube-system, and in the namespace of the webhook, are not limited. Otherwise a cluster could not repair
//     itself while the webhook is down. The original needs no exception, because it runs inside the API server.
//   - If the webhook does not answer, the API server stores the Event (failurePolicy Ignore). Otherwise the Events
//     that explain why a webhook is down would be lost. The original cannot be down.
//   - Unknown fields of the configuration file are errors. The original ignores them.
//
// Like the original, the hook does not limit Events of the group events.k8s.io, although these are the same objects. To
// limit these as well, remove the MatchPolicy: the API server then sends them to the hook as Events of the core group.
package eventratelimit

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"
	"sync"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/pkg/webhook"
)

// Hook returns the hook that denies an Event if one of the limits is reached. The clock is clock.RealClock{} except in
// tests.
func Hook(config Config, clock clock.PassiveClock) *webhook.Hook {
	all := make([]*limiter, len(config.Limits))
	for i, limit := range config.Limits {
		all[i] = newLimiter(limit, clock)
	}
	return webhook.Validating(admissionregistrationv1.ValidatingWebhook{
		Name:          "eventratelimit.example.com",
		Rules:         webhook.Rules(webhook.OnWrite("", "v1", "events")),
		MatchPolicy:   ptr.To(admissionregistrationv1.Exact), // not events.k8s.io
		FailurePolicy: ptr.To(admissionregistrationv1.Ignore),
		SideEffects:   ptr.To(admissionregistrationv1.SideEffectClassNoneOnDryRun), // an Event takes a token for each limit
	}, func(_ context.Context, req *webhook.Request[corev1.Event]) error {
		return req.SideEffect(func() error { return take(all, req) })
	})
}

// take takes a token from the bucket of each limit, even if another limit denies the Event.
func take(all []*limiter, req *webhook.Request[corev1.Event]) error {
	var errs []error
	for _, l := range all {
		if key := l.key(req); !l.bucket(key).TryAccept() {
			errs = append(errs, fmt.Errorf("limit reached on type %v for key %v", l.limit.Type, shortened(key)))
		}
	}
	if err := utilerrors.NewAggregate(errs); err != nil {
		return apierrors.NewTooManyRequestsError(err.Error())
	}
	return nil
}

// A limiter contains the buckets of one limit.
type limiter struct {
	limit   Limit
	key     func(*webhook.Request[corev1.Event]) string
	clock   clock.PassiveClock
	mu      sync.Mutex // so that two calls do not create the same bucket
	buckets *lru.Cache // flowcontrol.PassiveRateLimiter by key
}

func newLimiter(limit Limit, clock clock.PassiveClock) *limiter {
	size := defaultCacheSize
	if limit.CacheSize > 0 {
		size = int(limit.CacheSize)
	}
	return &limiter{limit: limit, key: keys[limit.Type], clock: clock, buckets: lru.New(size)}
}

// bucket returns the bucket with this key. A new bucket is full. The map has hashes of the keys, because the name and
// the source of an Event can have megabytes.
func (l *limiter) bucket(text string) flowcontrol.PassiveRateLimiter {
	key := sha256.Sum256([]byte(text))
	l.mu.Lock()
	defer l.mu.Unlock()
	if known, ok := l.buckets.Get(key); ok {
		return known.(flowcontrol.PassiveRateLimiter)
	}
	bucket := flowcontrol.NewTokenBucketPassiveRateLimiterWithClock(float32(l.limit.QPS), int(l.limit.Burst), l.clock)
	l.buckets.Add(key, bucket)
	return bucket
}

// maxKey is the length of the longest key that is shown whole. Valid names are shorter.
const maxKey = 2000

func shortened(key string) string {
	if len(key) <= maxKey {
		return key
	}
	return strings.ToValidUTF8(key[:maxKey], "") + "…"
}

// keys maps each type of limit to the function that returns the key of an Event's bucket.
var keys = map[LimitType]func(*webhook.Request[corev1.Event]) string{
	Server:    func(*webhook.Request[corev1.Event]) string { return "" },
	Namespace: func(req *webhook.Request[corev1.Event]) string { return req.Namespace },
	User:      func(req *webhook.Request[corev1.Event]) string { return req.UserInfo.Username },
	SourceAndObject: func(req *webhook.Request[corev1.Event]) string {
		source, object := req.Object.Source, req.Object.InvolvedObject
		return strings.Join([]string{
			source.Component, source.Host, object.Kind, object.Namespace, object.Name, string(object.UID), object.APIVersion,
		}, "")
	},
}
