// SPDX-License-Identifier: Apache-2.0

package program

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/url"
	"os"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/admitkit/admitkit/internal/genblock"
	"github.com/admitkit/admitkit/pkg/certs"
	"github.com/admitkit/admitkit/pkg/install"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// address holds the flags that say where the API server finds the hooks.
type address struct {
	service, namespace, url, caFile, injectCAFrom string
}

func (a *address) addFlags(flags *flag.FlagSet, name string) {
	flags.StringVar(&a.service, "service", name, "`name` of the Service in front of the program")
	flags.StringVar(&a.namespace, "namespace", name, "`namespace` of the program and its Service")
	flags.StringVar(&a.url, "url", "", "https `URL` of the hooks, instead of the Service, if the program runs outside of the cluster")
	flags.StringVar(&a.caFile, "ca-file", "", "with --print-configuration: PEM `file` with the CA of the serving certificate")
	flags.StringVar(&a.injectCAFrom, "inject-ca-from", "", "with --print-configuration: `namespace/name` of the cert-manager Certificate whose CA becomes the caBundle")
}

// configuration returns the options of the webhook configurations.
func (a *address) configuration(name string) webhook.ConfigurationOptions {
	o := webhook.ConfigurationOptions{Name: name, URL: a.url, Namespace: a.namespace}
	if a.url == "" {
		o.Service = &admissionregistrationv1.ServiceReference{Name: a.service, Namespace: a.namespace}
	}
	return o
}

// hosts returns the names and addresses that the serving certificate must have.
func (a *address) hosts() (names []string, ips []net.IP, err error) {
	if a.url == "" {
		return certs.ServiceNames(a.service, a.namespace), nil, nil
	}
	u, err := url.Parse(a.url)
	if err != nil {
		return nil, nil, fmt.Errorf("--url: %w", err)
	}
	if ip := net.ParseIP(u.Hostname()); ip != nil {
		return nil, []net.IP{ip}, nil
	}
	return []string{u.Hostname()}, nil, nil
}

// print calls write with out. If --output names a file, print instead replaces the generated block of that file with
// the text from write, and prints the changed lines to out.
func (o *options) print(out io.Writer, write func(io.Writer) error) error {
	if o.output == "" {
		return write(out)
	}
	var text bytes.Buffer
	if err := write(&text); err != nil {
		return err
	}
	old, err := os.ReadFile(o.output)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("--output: %w", err)
	}
	now, err := genblock.Replace(old, text.Bytes())
	if err != nil {
		return fmt.Errorf("--output %s: %w", o.output, err)
	}
	if bytes.Equal(old, now) {
		return nil
	}
	if err := os.WriteFile(o.output, now, 0o644); err != nil { //nolint:gosec // manifests are for everybody
		return fmt.Errorf("--output: %w", err)
	}
	_, err = fmt.Fprintf(out, "%s:\n%s", o.output, genblock.Changes(old, now))
	return err
}

// writeConfigurations writes the webhook configurations. Manifests that are generated this way cannot differ from the
// code.
func (j *job) writeConfigurations(out io.Writer) error {
	a := &j.address
	options := a.configuration(j.name)
	if a.injectCAFrom != "" {
		options.Annotations = map[string]string{"cert-manager.io/inject-ca-from": a.injectCAFrom}
	}
	if a.caFile != "" {
		var err error
		if options.CABundle, err = os.ReadFile(a.caFile); err != nil {
			return fmt.Errorf("--ca-file: %w", err)
		}
	}
	mutating, validating, err := webhook.Configurations(options, j.hooks...)
	if err != nil {
		return err
	}
	// A nil pointer in an interface is not nil, so each is checked with its own type.
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

// writePermissions writes the permissions that the program needs: the ones for --self-managed, and the ones that its
// hooks declared.
func (j *job) writePermissions(w io.Writer) error {
	account := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: j.address.namespace, Name: j.managed.serviceAccount}
	rules, secret := j.deps.Rules(), ""
	permissions := install.PermissionsFor(j.name, account, rules)
	if j.managed.on {
		s, err := j.selfManaged()
		if err != nil {
			return err
		}
		permissions, err = install.RBAC(s.install, install.RBACOptions{ServiceAccount: account.Name, Hooks: j.hooks, Certs: &s.certs, SecretExists: true, Rules: rules})
		if err != nil {
			return err
		}
		secret = fmt.Sprintf(emptySecret, s.certs.Secret, s.certs.Namespace)
	}
	text, err := permissions.YAML()
	if err != nil {
		return err
	}
	if len(text) == 0 {
		text = fmt.Appendf(nil, "# %s needs no permissions.\n", j.name)
	}
	_, err = fmt.Fprintf(w, "%s%s", text, secret)
	return err
}

// emptySecret is the manifest of the Secret for the CA. The program may fill the Secret but not create it.
const emptySecret = `---
# The replicas write their CA into this Secret. They may not create it, because RBAC cannot limit the creation of Secrets to
# a name. Applying this again keeps the CA. Whoever can read the Secret can impersonate the webhook.
apiVersion: v1
kind: Secret
metadata:
  name: %s
  namespace: %s
type: Opaque
`
