// SPDX-License-Identifier: Apache-2.0

package install

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"

	"github.com/admitkit/admitkit/pkg/webhook"
)

// Options say what is installed, and when its failures count.
type Options struct {
	// Config is how the API server is reached: required, but not by [RBAC].
	Config *rest.Config
	// Configuration says where the API server finds the hooks: Name, Service or URL, and the
	// namespace the webhook runs in are required. That namespace has to exist.
	//
	// Without a CABundle no caBundle is ever applied: the field belongs to who else sets it, as
	// a self-managed source of package certs does, or cert-manager's cainjector.
	Configuration webhook.ConfigurationOptions
	// FailOpenFirst has [Installer.Apply] register a webhook whose failurePolicy is Fail with
	// Ignore, until [Installer.Promote]. A webhook that the cluster has with Fail already keeps
	// it: a rollout opens no gap. One that is no longer among the hooks gets Ignore, and goes
	// with Promote.
	FailOpenFirst bool
	// Deployment names the Deployment of the webhook, in its namespace. Promote waits until the
	// Deployment is rolled out: every replica is of its newest template and ready. If that is
	// another template by then, the newer program installs, and this one gets [ErrSuperseded].
	Deployment string
	// Ready is what Promote waits for besides: it is asked until it returns nil. May be nil.
	Ready func(context.Context) error
	// Revision orders the versions of a program during a rollout: an installation of a lower
	// one leaves the configurations alone and returns [ErrSuperseded]. Take a number that grows
	// with every rollout, also one to older code, such as .Release.Revision of Helm. Zero is in
	// no order: who applies last wins, which is the newest program when it waits for Deployment,
	// unless a replica of an older one starts while the newer is rolled out.
	Revision int64
	// Force takes fields that another manager holds, such as helm or kubectl, and configurations
	// of another installation: those of another namespace, with another Service, or with another
	// URL. Without it that is an error which names them.
	Force bool
	// Confirmations is how often in a row, each time over a new connection, the API server has
	// to show what it enforces, because there may be several behind one address. 10 when unset.
	Confirmations int
	// Interval is the pause between two such questions, 100ms when unset. While the answer is
	// not the one that is waited for, the pause grows to twenty times of it.
	Interval time.Duration
	// Logger is told what is done and waited for. slog's default when unset.
	Logger logr.Logger
}

const (
	defaultConfirmations = 10
	defaultInterval      = 100 * time.Millisecond
)

// namespace is the one the webhook runs in, or empty.
func (o Options) namespace() string {
	if s := o.Configuration.Service; s != nil {
		return cmp.Or(o.Configuration.Namespace, s.Namespace)
	}
	return o.Configuration.Namespace
}

// owner tells installations apart that have the same name by mistake: by the namespace, and by the
// Service or the URL.
func (o Options) owner() string {
	if s := o.Configuration.Service; s != nil {
		return s.Namespace + "/" + s.Name
	}
	return o.namespace() + "/" + strings.TrimSuffix(o.Configuration.URL, "/")
}

const ofURL = "://" // an owner has this that has a URL for a Service

// sameNamespace takes one with a URL, as a program has outside of its cluster, for each in its
// namespace. That is enough to remove: who installs must be the very same.
func sameNamespace(a, b string) bool {
	namespace, service, _ := strings.Cut(a, "/")
	otherNamespace, otherService, _ := strings.Cut(b, "/")
	return namespace == otherNamespace && (service == otherService || strings.Contains(a+b, ofURL))
}

func describeOwner(owner string) string {
	if namespace, url, _ := strings.Cut(owner, "/"); strings.Contains(url, ofURL) {
		return url + ", in namespace " + namespace
	}
	return "Service " + owner
}

// validate checks what package webhook does not.
func (o Options) validate() error {
	var errs []error
	if o.namespace() == "" {
		errs = append(errs, errors.New("set Namespace of the configuration options: what is enforced is found out with requests in the namespace the webhook runs in"))
	}
	if o.Configuration.Service == nil && o.Configuration.URL == "" {
		errs = append(errs, errors.New("set Service or URL of the configuration options, even if each registration has its own: the marker hooks are served there"))
	}
	if o.Deployment != "" {
		for _, problem := range validation.IsDNS1123Subdomain(o.Deployment) {
			errs = append(errs, fmt.Errorf("option Deployment %q: %s", o.Deployment, problem))
		}
	}
	if o.Revision < 0 || o.Confirmations < 0 || o.Interval < 0 {
		errs = append(errs, errors.New("options Revision, Confirmations and Interval must not be negative"))
	}
	return errors.Join(errs...)
}

func (o Options) completed() Options {
	o.Confirmations = cmp.Or(o.Confirmations, defaultConfirmations)
	o.Interval = cmp.Or(o.Interval, defaultInterval)
	return o
}
