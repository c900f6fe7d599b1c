// SPDX-License-Identifier: Apache-2.0

package program

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/yaml"

	"github.com/admitkit/admitkit/pkg/certs"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// where says what the configurations need to know and the hooks cannot.
type where struct {
	service, namespace, url, caFile, injectCAFrom string
}

func (w *where) addFlags(flags *flag.FlagSet, name string) {
	flags.StringVar(&w.service, "service", name, "`name` of the Service in front of the program")
	flags.StringVar(&w.namespace, "namespace", name, "`namespace` of the program and its Service")
	flags.StringVar(&w.url, "url", "", "https `URL` of the program, instead of a Service, when it runs outside of the cluster")
	flags.StringVar(&w.caFile, "ca-file", "", "with --print-configuration: PEM `file` with the CA of the serving certificate")
	flags.StringVar(&w.injectCAFrom, "inject-ca-from", "", "with --print-configuration: `namespace/name` of the cert-manager Certificate whose CA is filled in")
}

// configuration says where the API server finds the hooks.
func (w *where) configuration(name string) webhook.ConfigurationOptions {
	o := webhook.ConfigurationOptions{Name: name, URL: w.url, Namespace: w.namespace}
	if w.url == "" {
		o.Service = &admissionregistrationv1.ServiceReference{Name: w.service, Namespace: w.namespace}
	}
	return o
}

// hosts returns what the API server asks the certificate to be for.
func (w *where) hosts() (names []string, ips []net.IP, err error) {
	if w.url == "" {
		return certs.ServiceNames(w.service, w.namespace), nil, nil
	}
	u, err := url.Parse(w.url)
	if err != nil {
		return nil, nil, fmt.Errorf("--url: %w", err)
	}
	if ip := net.ParseIP(u.Hostname()); ip != nil {
		return nil, []net.IP{ip}, nil
	}
	return []string{u.Hostname()}, nil, nil
}

// print writes the configurations of the hooks: the only source of the manifests, so that
// code and cluster cannot drift apart.
func (w *where) print(out io.Writer, name string, hooks []*webhook.Hook) error {
	o := w.configuration(name)
	if w.injectCAFrom != "" {
		o.Annotations = map[string]string{"cert-manager.io/inject-ca-from": w.injectCAFrom}
	}
	if w.caFile != "" {
		var err error
		if o.CABundle, err = os.ReadFile(w.caFile); err != nil {
			return fmt.Errorf("--ca-file: %w", err)
		}
	}
	mutating, validating, err := webhook.Configurations(o, hooks...)
	if err != nil {
		return err
	}
	// Two nils of two types: an interface that holds either is not nil.
	if mutating != nil {
		err = errors.Join(err, printDocument(out, mutating))
	}
	if validating != nil {
		err = errors.Join(err, printDocument(out, validating))
	}
	return err
}

func printDocument(w io.Writer, configuration any) error {
	text, err := yaml.Marshal(configuration)
	if err == nil {
		_, err = fmt.Fprintf(w, "---\n%s", text)
	}
	return err
}
