// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"

	"github.com/admitkit/admitkit/pkg/certs/internal/kube"
)

// Options configure a [SelfManaged] source. Config, Namespace, Secret and a name to serve are
// required. All replicas of a webhook should have the same options.
type Options struct {
	// Config is the client configuration for the API server. It is copied.
	Config *rest.Config
	// Namespace and Secret name the Secret in which the replicas share the CA. It is created if it
	// does not exist. Anyone who can read it can impersonate the webhook.
	Namespace, Secret string
	// DNSNames and IPAddresses are the names in the serving certificate: [ServiceNames] for a webhook
	// behind a Service. [SelfManaged.SetNames] changes them.
	DNSNames    []string
	IPAddresses []net.IP
	// Targets are the objects whose caBundle the source writes. A target may be created later.
	Targets []Target

	// CALifetime is how long a CA is valid. Zero means one year. A CA is replaced after two thirds
	// of its lifetime.
	CALifetime time.Duration
	// LeafLifetime is how long a serving certificate is valid. Zero means 7 days, or a sixth of
	// CALifetime if that is less. A certificate is replaced after two thirds of its lifetime.
	LeafLifetime time.Duration
	// Settle is how long a new CA must be in every caBundle before it signs, so that every API
	// server has read it. Zero means one minute, or a twentieth of CALifetime if that is less.
	// Negative means no wait, for tests with one API server.
	Settle time.Duration
	// ClockSkew is the largest difference between the clocks of replicas and API servers that the
	// source tolerates. A certificate is valid from ClockSkew before its creation. Zero means a
	// tenth of LeafLifetime, at most one hour. Negative means no skew.
	ClockSkew time.Duration
	// Interval is the time between two checks of the Secret and the targets if no watch reports a
	// change. Zero means 10 s, or a tenth of LeafLifetime if that is less. Up to a tenth is added at
	// random, so that replicas do not check together.
	Interval time.Duration
	// KeyType is the type of the keys of CAs and certificates. Empty means ECDSAP256. A change of
	// the type replaces the CA.
	KeyType KeyType

	// Elected is closed when this replica may write the Secret and the targets. For example, it is the channel that the
	// method Elected of a controller-runtime manager returns. Nil means that every replica may write, which is safe:
	// concurrent writes are detected.
	Elected <-chan struct{}
	// FieldManager is the field manager that owns the caBundles. Empty means "admitkit-certs".
	FieldManager string
	// Logger logs each step of a rotation, and errors. The zero value means the logger in the
	// context of Start, or else slog's default.
	Logger logr.Logger
}

// ServiceNames returns the DNS names that clients in the cluster use for a Service. API servers
// use the first, "<service>.<namespace>.svc".
func ServiceNames(service, namespace string) []string {
	return []string{
		service + "." + namespace + ".svc",
		service + "." + namespace + ".svc.cluster.local",
		service + "." + namespace,
	}
}

// completed returns the options with defaults, or an error that lists every invalid option.
func (o Options) completed() (Options, error) {
	given := o
	setDefault := func(d *time.Duration, value time.Duration) {
		if *d == 0 {
			*d = value
		}
	}
	setDefault(&o.CALifetime, defaultCALifetime)
	setDefault(&o.LeafLifetime, min(7*24*time.Hour, o.CALifetime/6))
	setDefault(&o.ClockSkew, min(time.Hour, o.LeafLifetime/10))
	setDefault(&o.Settle, min(time.Minute, o.CALifetime/20))
	setDefault(&o.Interval, min(10*time.Second, o.LeafLifetime/10))
	o.ClockSkew, o.Settle = max(o.ClockSkew, 0), max(o.Settle, 0)
	if o.KeyType == "" {
		o.KeyType = ECDSAP256
	}
	if o.FieldManager == "" {
		o.FieldManager = "admitkit-certs"
	}
	o.DNSNames, o.IPAddresses, o.Targets = slices.Clone(o.DNSNames), slices.Clone(o.IPAddresses), slices.Clone(o.Targets)
	times := given.checkUnits() // checkTimes would only report consequences of a wrong unit
	if times == nil {
		times = o.checkTimes()
	}
	return o, errors.Join(o.checkNames(), o.checkTargets(), times)
}

func (o Options) checkNames() error {
	var errs []error
	for what, name := range map[string]string{"Namespace": o.Namespace, "Secret": o.Secret} {
		for _, problem := range validation.IsDNS1123Subdomain(name) {
			errs = append(errs, fmt.Errorf("%s %q: %s", what, name, problem))
		}
	}
	return errors.Join(append(errs, names{o.DNSNames, o.IPAddresses}.check())...)
}

func (n names) check() error {
	if len(n.dns)+len(n.ips) == 0 {
		return errors.New("DNSNames and IPAddresses are empty: set at least one name or address, such as the result of ServiceNames")
	}
	var errs []error
	for _, name := range n.dns {
		if len(validation.IsDNS1123Subdomain(name)) > 0 && len(validation.IsWildcardDNS1123Subdomain(name)) > 0 {
			errs = append(errs, fmt.Errorf("%q in DNSNames is not a DNS name", name))
		}
	}
	for _, ip := range n.ips {
		if ip.To16() == nil {
			errs = append(errs, fmt.Errorf("%q in IPAddresses is not an IP address", []byte(ip)))
		}
	}
	return errors.Join(errs...)
}

func (o Options) checkTargets() error {
	var errs []error
	for i, t := range o.Targets {
		switch t.Kind {
		case MutatingWebhookConfiguration, ValidatingWebhookConfiguration:
		case CustomResourceDefinition, APIService:
			if len(t.Webhooks) > 0 {
				errs = append(errs, fmt.Errorf("target %s: Webhooks is for webhook configurations only", t))
			}
		default:
			errs = append(errs, fmt.Errorf("target %d has the unknown kind %q", i, t.Kind))
		}
		if t.Name == "" {
			errs = append(errs, fmt.Errorf("target %d, a %s, has no name", i, t.Kind))
		}
		if (t.OwnerAnnotation == "") != (t.Owner == "") {
			errs = append(errs, fmt.Errorf("target %s: set both of OwnerAnnotation and Owner, or neither", t))
		}
		same := func(other Target) bool { return other.Kind == t.Kind && other.Name == t.Name }
		if slices.ContainsFunc(o.Targets[:i], same) {
			errs = append(errs, fmt.Errorf("target %s is listed twice", t))
		}
	}
	return errors.Join(errs...)
}

// checkUnits rejects durations that look like a number of seconds or hours without a unit.
func (o Options) checkUnits() error {
	var errs []error
	for _, d := range []struct {
		name         string
		value, least time.Duration
		example      string
	}{
		{"CALifetime", o.CALifetime, time.Second, "365*24*time.Hour"}, // certificates have times in whole seconds
		{"LeafLifetime", o.LeafLifetime, time.Second, "7*24*time.Hour"},
		{"Settle", o.Settle, time.Millisecond, "time.Minute"},
		{"ClockSkew", o.ClockSkew, time.Millisecond, "time.Hour"},
		{"Interval", o.Interval, time.Millisecond, "10*time.Second"},
	} {
		if d.value > 0 && d.value < d.least {
			errs = append(errs, fmt.Errorf("%s is %s, want %s or more: a number without a unit means nanoseconds, write %s", d.name, d.value, d.least, d.example))
		}
	}
	return errors.Join(errs...)
}

func (o Options) checkTimes() error {
	var errs []error
	for _, d := range []struct {
		name  string
		value time.Duration
	}{{"CALifetime", o.CALifetime}, {"LeafLifetime", o.LeafLifetime}, {"Interval", o.Interval}} {
		if d.value <= 0 {
			errs = append(errs, fmt.Errorf("%s %s: must be positive", d.name, d.value))
		}
	}
	// A rotation must fit into the last third of a CA's lifetime.
	if need := o.Settle + o.LeafLifetime + 2*o.ClockSkew + 2*o.Interval; need > o.CALifetime/3 {
		errs = append(errs, fmt.Errorf("CALifetime %s is too short: a third of it must be at least %[2]s, the sum of Settle, LeafLifetime, twice ClockSkew and twice Interval", o.CALifetime, need))
	}
	if !slices.Contains([]KeyType{ECDSAP256, ECDSAP384, RSA2048, RSA4096, Ed25519}, o.KeyType) {
		_, err := o.KeyType.generate()
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (o Options) policy() policy {
	return policy{
		name: authorityName + o.Namespace + "/" + o.Secret, keyType: o.KeyType,
		caLifetime: o.CALifetime, leafLifetime: o.LeafLifetime, settle: o.Settle, skew: o.ClockSkew,
	}
}

// A Target is an object whose caBundle fields a [SelfManaged] source writes.
type Target struct {
	Kind TargetKind
	Name string
	// Webhooks names the webhooks in the configuration that get the caBundle. Empty means all. For other
	// kinds it must be empty: they have a single caBundle.
	Webhooks []string
	// OwnerAnnotation and Owner identify the installation. If the object has this annotation with
	// another value, it belongs to another installation of the same name and is not written. A source
	// that has no other target does not become ready then. Empty means no check.
	OwnerAnnotation, Owner string
}

// A TargetKind is a kind of object with a caBundle.
type TargetKind string

// The kinds of a Target, all in version v1.
const (
	MutatingWebhookConfiguration   TargetKind = "MutatingWebhookConfiguration"
	ValidatingWebhookConfiguration TargetKind = "ValidatingWebhookConfiguration"
	CustomResourceDefinition       TargetKind = "CustomResourceDefinition" // its conversion webhook
	APIService                     TargetKind = "APIService"
)

func (t Target) String() string { return string(t.Kind) + " " + t.Name }

// object converts the target to the type of package kube.
func (t Target) object() kube.Target {
	return kube.Target{Kind: string(t.Kind), Name: t.Name, Webhooks: t.Webhooks, OwnerAnnotation: t.OwnerAnnotation, Owner: t.Owner}
}

func targetObjects(targets []Target) []kube.Target {
	var all []kube.Target
	for _, t := range targets {
		all = append(all, t.object())
	}
	return all
}
