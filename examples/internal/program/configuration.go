// SPDX-License-Identifier: Apache-2.0

package program

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/yaml"

	"github.com/admitkit/admitkit/pkg/webhook"
)

// A registration is what --print-configuration needs to know and the hooks cannot.
type registration struct {
	service, namespace, url, caFile, injectCAFrom string
}

func (r *registration) addFlags(flags *flag.FlagSet, name string) {
	flags.StringVar(&r.service, "service", name, "with --print-configuration: `name` of the Service in front of the program")
	flags.StringVar(&r.namespace, "namespace", name, "with --print-configuration: `namespace` of the Service")
	flags.StringVar(&r.url, "url", "", "with --print-configuration: https `URL` of the program, when it runs outside of the cluster")
	flags.StringVar(&r.caFile, "ca-file", "", "with --print-configuration: PEM `file` with the CA of the serving certificate")
	flags.StringVar(&r.injectCAFrom, "inject-ca-from", "", "with --print-configuration: `namespace/name` of the cert-manager Certificate whose CA is filled in")
}

// print writes the configurations of the hooks: the only source of the manifests, so that
// code and cluster cannot drift apart.
func (r *registration) print(w io.Writer, name string, hooks []*webhook.Hook) error {
	o := webhook.ConfigurationOptions{Name: name, URL: r.url, Namespace: r.namespace}
	if r.url == "" {
		o.Service = &admissionregistrationv1.ServiceReference{Name: r.service, Namespace: r.namespace}
	}
	if r.injectCAFrom != "" {
		o.Annotations = map[string]string{"cert-manager.io/inject-ca-from": r.injectCAFrom}
	}
	if r.caFile != "" {
		var err error
		if o.CABundle, err = os.ReadFile(r.caFile); err != nil {
			return fmt.Errorf("--ca-file: %w", err)
		}
	}
	mutating, validating, err := webhook.Configurations(o, hooks...)
	if err != nil {
		return err
	}
	// Two nils of two types: an interface that holds either is not nil.
	if mutating != nil {
		err = errors.Join(err, printDocument(w, mutating))
	}
	if validating != nil {
		err = errors.Join(err, printDocument(w, validating))
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
