// SPDX-License-Identifier: Apache-2.0

// Package manifests generates the webhook configurations for the hooks of a Go package.
package manifests

import (
	"errors"
	"fmt"
	"os"
	"path"
	"strconv"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/admitkit/admitkit/internal/cli/scaffold"
	"github.com/admitkit/admitkit/internal/problem"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// These are the values of the flag --form. V1 and V1beta1 are the API versions of the objects. Static means files for
// manifest-based admission control.
const (
	V1      = "v1"
	V1beta1 = "v1beta1"
	Static  = "static"
)

// Forms returns the values of the flag --form.
func Forms() []string { return []string{V1, V1beta1, Static} }

// Options are the flags of the command.
type Options struct {
	Form, Name, Service, URL, CAFile, Namespace string
	// Labels and Annotations have entries of the form KEY=VALUE.
	Labels, Annotations []string
	// CertManager has the form NAMESPACE/CERTIFICATE.
	CertManager string
	// Kubernetes is the version of the API server, such as 1.36, or empty for any version that serves the form.
	Kubernetes string
	// ServerDir is the folder of static manifests on the host of the API server.
	ServerDir string
}

// injectFrom is the annotation that makes cert-manager set the caBundle.
const injectFrom = "cert-manager.io/inject-ca-from"

// Configuration converts the flags to options of package webhook. It checks everything that needs no hooks.
func (o *Options) Configuration() (webhook.ConfigurationOptions, error) {
	c := webhook.ConfigurationOptions{Name: o.Name, URL: o.URL, Namespace: o.Namespace}
	if err := o.check(); err != nil {
		return c, err
	}
	var err error
	if o.Service != "" {
		if c.Service, err = service(o.Service); err != nil {
			return c, err
		}
		if c.Name == "" {
			c.Name = c.Service.Name
		}
	}
	if c.Name == "" {
		unnamed := problem.New("the configuration objects need a name")
		if o.URL == "" {
			return c, unnamed.Hint("%s", o.whereHint())
		}
		return c, unnamed.Hint("--name NAME")
	}
	if o.CAFile != "" {
		if c.CABundle, err = os.ReadFile(o.CAFile); err != nil {
			return c, problem.New("--ca-file: %w", err)
		}
	}
	if c.Labels, err = pairs("--label", o.Labels); err != nil {
		return c, err
	}
	if c.Annotations, err = pairs("--annotation", o.Annotations); err != nil {
		return c, err
	}
	if o.CertManager != "" {
		if c.Annotations == nil {
			c.Annotations = map[string]string{}
		}
		c.Annotations[injectFrom] = o.CertManager
	}
	if _, _, err := webhook.Configurations(c); err != nil {
		return c, inFlags(err)
	}
	return c, nil
}

// Complete sets missing flags from the admitkit project that contains dir. It returns these flags as text.
func (o *Options) Complete(dir string) (string, error) {
	if o.Service != "" || o.URL != "" || o.form() == Static {
		return "", nil
	}
	p, err := scaffold.Of(dir)
	if err != nil || p == nil {
		return "", err
	}
	o.Service = p.Name + "/" + p.Name
	taken := "--service " + o.Service
	if !p.SelfManaged() && o.CertManager == "" && o.CAFile == "" {
		o.CertManager = p.Name + "/" + p.Name
		taken += " --cert-manager " + o.CertManager
	}
	return taken, nil
}

// whereHint returns a hint with the flags that give the address of the hooks.
func (o *Options) whereHint() string {
	if o.form() == Static {
		return "--url https://HOST:PORT"
	}
	return "--service NAMESPACE/NAME, or --url https://HOST:PORT"
}

// check finds flags with wrong values and flags that exclude each other.
func (o *Options) check() error {
	if err := o.checkVersion(); err != nil {
		return err
	}
	switch o.form() {
	case V1, V1beta1, Static:
	default:
		return problem.New("--form=%s: choose one of %s", o.Form, strings.Join(Forms(), ", "))
	}
	if o.Service != "" && o.URL != "" {
		return problem.New("--service and --url exclude each other")
	}
	if o.CertManager != "" {
		namespace, name, found := strings.Cut(o.CertManager, "/")
		switch {
		case !found || namespace == "" || name == "" || strings.Contains(name, "/"):
			return problem.New("--cert-manager=%s: want NAMESPACE/CERTIFICATE", o.CertManager)
		case o.CAFile != "":
			return problem.New("--cert-manager and --ca-file exclude each other: cert-manager would replace the caBundle")
		case o.form() == Static:
			return problem.New("--cert-manager: cert-manager does not write into static manifests").Hint("--ca-file FILE")
		}
	}
	if o.form() == Static {
		switch {
		case o.Service != "":
			return problem.New("--service: the API server reads static manifests before it knows Services, so they need a URL").Hint("--url https://HOST:PORT")
		case !path.IsAbs(o.ServerDir):
			return problem.New("--server-dir=%s: the API server needs an absolute path", o.ServerDir)
		}
	}
	return nil
}

// service parses NAMESPACE/NAME or NAMESPACE/NAME:PORT.
func service(text string) (*admissionregistrationv1.ServiceReference, error) {
	name, port, hasPort := strings.Cut(text, ":")
	namespace, name, found := strings.Cut(name, "/")
	if !found || namespace == "" || name == "" || strings.Contains(name, "/") {
		return nil, problem.New("--service=%s: want NAMESPACE/NAME or NAMESPACE/NAME:PORT", text)
	}
	s := &admissionregistrationv1.ServiceReference{Namespace: namespace, Name: name}
	if hasPort {
		n, err := strconv.ParseInt(port, 10, 32)
		if err != nil {
			return nil, problem.New("--service=%s: the port %q is not a number", text, port)
		}
		s.Port = new(int32(n))
	}
	return s, nil
}

func pairs(flag string, all []string) (map[string]string, error) {
	if len(all) == 0 {
		return nil, nil
	}
	m := make(map[string]string, len(all))
	for _, pair := range all {
		key, value, found := strings.Cut(pair, "=")
		if !found || key == "" {
			return nil, problem.New("%s=%s: want KEY=VALUE", flag, pair)
		}
		if _, twice := m[key]; twice {
			return nil, problem.New("%s=%s: duplicate key %s", flag, pair, key)
		}
		m[key] = value
	}
	return m, nil
}

// inFlags replaces the names of options in an error of webhook.Configurations by the names of flags.
func inFlags(err error) error {
	text := strings.NewReplacer(
		"ConfigurationOptions.URL", "--url",
		"ConfigurationOptions.Service", "--service",
		"ConfigurationOptions.CABundle", "--ca-file",
		"ConfigurationOptions.Namespace", "--namespace", // before Name, which is a prefix of it
		"ConfigurationOptions.Name", "--name",
		"ConfigurationOptions.Labels", "--label",
		"ConfigurationOptions.Annotations", "--annotation",
	).Replace(err.Error())
	var known *problem.Error
	if errors.As(err, &known) {
		return &problem.Error{Err: errors.New(text), Hints: known.Hints}
	}
	return fmt.Errorf("%s", text)
}
