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

// Options configure an [Installer].
type Options struct {
	// Config is the client configuration for the API server. Required, except for [RBAC].
	Config *rest.Config
	// Configuration has the name of the configurations and the address at which the API server calls the hooks. Name,
	// Service or URL, and the webhook's namespace are required. The namespace must exist.
	//
	// Without a CABundle the installer never applies a caBundle: a self-managed source of package
	// certs, or cert-manager's cainjector, owns the field.
	Configuration webhook.ConfigurationOptions
	// FailOpenFirst makes [Installer.Apply] register a new webhook with Ignore instead of Fail, until
	// [Installer.Promote]. A webhook that the cluster already has with Fail keeps it, so a rollout
	// opens no gap. A webhook that is no longer among the hooks gets Ignore, and Promote removes it.
	FailOpenFirst bool
	// Deployment names the Deployment of the webhook, in its namespace. Promote waits until the
	// Deployment is rolled out: every replica has the newest template and is ready. If the Deployment
	// has a newer template by then, the newer program installs, and this program gets [ErrSuperseded].
	Deployment string
	// Ready is a further condition of Promote. Promote calls the function until it returns nil. If
	// Ready is nil, there is no such condition.
	Ready func(context.Context) error
	// Revision orders the versions of a program during a rollout. If the stored configurations have a higher revision,
	// the installer changes nothing and returns [ErrSuperseded]. Use a number that grows with every rollout, rollbacks
	// included, such as .Release.Revision of Helm. Zero means no order: the last apply wins. If Deployment is set, the
	// last apply normally comes from the newest program. The exception is an old replica that starts during the
	// rollout.
	Revision int64
	// OwnedByNamespace makes the webhook's Namespace the owner of the configurations. When the Namespace is deleted,
	// the garbage collector of Kubernetes deletes them too. Without an owner they stay, and each call to the deleted
	// webhook fails. Set it only if the webhook runs in that Namespace. It needs the permission to get the Namespace. A
	// configuration is deleted as a whole, so do not set it if other managers add webhooks to the configurations.
	OwnedByNamespace bool
	// Force takes over fields of another field manager, such as helm or kubectl, and configurations
	// of another installation: of another namespace, Service or URL. Without Force these are errors.
	Force bool
	// Confirmations is how many checks in a row, each over a new connection, must show that the API
	// server enforces the configurations: several API servers may be behind one address. Zero means
	// 10.
	Confirmations int
	// Interval is the pause between two checks. Zero means 100 ms. While the checks fail, the pause
	// grows to twenty times the interval.
	Interval time.Duration
	// Logger logs what the installer does and waits for. The zero value means slog's default.
	Logger logr.Logger
}

const (
	defaultConfirmations = 10
	defaultInterval      = 100 * time.Millisecond
)

// namespace returns the namespace that the webhook runs in, or "".
func (o Options) namespace() string {
	if s := o.Configuration.Service; s != nil {
		return cmp.Or(o.Configuration.Namespace, s.Namespace)
	}
	return o.Configuration.Namespace
}

// owner identifies an installation by its namespace and its Service or URL, to detect two installations with the same
// name.
func (o Options) owner() string {
	if s := o.Configuration.Service; s != nil {
		return s.Namespace + "/" + s.Name
	}
	return o.namespace() + "/" + strings.TrimSuffix(o.Configuration.URL, "/")
}

const ofURL = "://" // part of an owner with a URL instead of a Service

// sameNamespace reports whether two installations may remove each other's configurations. The arguments are results of
// Options.owner. An installation with a URL, such as a program outside of the cluster, matches every installation in
// its namespace. Installing is stricter: it requires equal owners.
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

// validate checks the options that package webhook does not check.
func (o Options) validate() error {
	var errs []error
	if o.namespace() == "" {
		errs = append(errs, errors.New("Configuration.Namespace is empty: set it to the namespace of the webhook, where the installer sends its check requests"))
	}
	if o.Configuration.Service == nil && o.Configuration.URL == "" {
		errs = append(errs, errors.New("Configuration has neither Service nor URL: set one of them, even if each registration has its own, since the marker hooks are served there"))
	}
	if o.Deployment != "" {
		for _, problem := range validation.IsDNS1123Subdomain(o.Deployment) {
			errs = append(errs, fmt.Errorf("Deployment %q is not a valid name: %s", o.Deployment, problem))
		}
	}
	if o.Revision < 0 || o.Confirmations < 0 || o.Interval < 0 {
		errs = append(errs, errors.New("Revision, Confirmations and Interval must not be negative"))
	}
	return errors.Join(errs...)
}

func (o Options) completed() Options {
	o.Confirmations = cmp.Or(o.Confirmations, defaultConfirmations)
	o.Interval = cmp.Or(o.Interval, defaultInterval)
	return o
}
