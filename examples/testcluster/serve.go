// SPDX-License-Identifier: Apache-2.0

package testcluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/admitkit/admitkit/internal/devcert"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// canaryLabel is a label of the objects with which Serve tests whether a configuration is enforced.
const canaryLabel = "testcluster.example.com/canary"

// Serve runs the hooks on loopback, registers them by URL in webhook configurations called name, and waits until the
// API server calls them. stop deletes the configurations and waits until the API server no longer calls the hooks.
func (c *Cluster) Serve(ctx context.Context, name string, hooks ...*webhook.Hook) (stop func() error, err error) {
	ca, err := devcert.NewCA()
	if err != nil {
		return nil, err
	}
	tlsConfig, err := ca.Serving("127.0.0.1")
	if err != nil {
		return nil, err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	// A configuration takes effect as a whole, so one canary per configuration is enough.
	mutate, validate := canary{name + "-mutating", c.clients()}, canary{name + "-validating", c.clients()}
	hooks = append(slices.Clone(hooks), mutate.mutating(), validate.validating())
	mutating, validating, err := webhook.Configurations(webhook.ConfigurationOptions{
		Name: name, URL: "https://" + listener.Addr().String(), CABundle: ca.Bundle,
	}, hooks...)
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	// Log only errors, because the number of hooks in the first log line would include the canaries.
	logger := logr.FromSlogHandler(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	background := context.WithoutCancel(ctx)
	serving, cancel := context.WithCancel(background)
	stopped := make(chan error, 1)
	go func() {
		stopped <- webhook.NewServer(webhook.Options{Listener: listener, TLSConfig: tlsConfig, Logger: logger, ShutdownDelay: -1}, hooks...).Start(serving)
	}()
	stop = func() error {
		err := errors.Join(validate.deregister(background, validating), mutate.deregister(background, mutating))
		cancel()
		return errors.Join(err, <-stopped)
	}
	if err = validate.register(ctx, validating); err == nil {
		err = mutate.register(ctx, mutating)
	}
	if err != nil {
		return nil, errors.Join(err, stop())
	}
	return stop, nil
}

// A canary is a hook that denies exactly the objects with its label.
type canary struct {
	name    string
	clients []client.Client // one for each API server of the cluster
}

func (c canary) mutating() *webhook.Hook {
	return webhook.Mutating(admissionregistrationv1.MutatingWebhook{
		Name: c.name + ".testcluster.example.com", Rules: c.rules(), ObjectSelector: c.selector(),
	}, c.deny)
}

func (c canary) validating() *webhook.Hook {
	return webhook.Validating(admissionregistrationv1.ValidatingWebhook{
		Name: c.name + ".testcluster.example.com", Rules: c.rules(), ObjectSelector: c.selector(),
	}, c.deny)
}

func (c canary) rules() []admissionregistrationv1.RuleWithOperations {
	return webhook.Rules(webhook.OnCreate("", "v1", "configmaps"))
}

func (c canary) selector() *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{canaryLabel: c.name}}
}

func (c canary) deny(context.Context, *webhook.Request[metav1.PartialObjectMetadata]) error {
	return webhook.Deny(c.message())
}

func (c canary) message() string { return "canary of " + c.name }

func (c canary) register(ctx context.Context, configuration client.Object) error {
	if err := c.clients[0].Create(ctx, configuration); err != nil {
		return err
	}
	return c.wait(ctx, true)
}

func (c canary) deregister(ctx context.Context, configuration client.Object) error {
	if err := c.clients[0].Delete(ctx, configuration); err != nil {
		return client.IgnoreNotFound(err)
	}
	return c.wait(ctx, false)
}

// wait waits until all API servers enforce the canary, or until none does.
func (c canary) wait(ctx context.Context, enforced bool) error {
	for _, server := range c.clients {
		if err := c.waitFor(ctx, server, enforced); err != nil {
			return err
		}
	}
	return nil
}

// waitFor sends dry-run requests to an API server until the canary is enforced, or until it is no longer enforced.
func (c canary) waitFor(ctx context.Context, server client.Client, enforced bool) error {
	probe := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: metav1.NamespaceDefault, GenerateName: "canary-", Labels: map[string]string{canaryLabel: c.name},
	}}
	var last error
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		last = server.Create(ctx, probe.DeepCopy(), client.DryRunAll)
		if enforced {
			return last != nil && strings.Contains(last.Error(), c.message()), nil
		}
		return last == nil, nil
	})
	if err != nil {
		return errors.Join(fmt.Errorf("waiting until %s is enforced (%v): %w", c.name, enforced, err), last)
	}
	return nil
}
