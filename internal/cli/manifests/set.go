// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/admitkit/admitkit/internal/cli/gohooks"
	"github.com/admitkit/admitkit/internal/problem"
	"github.com/admitkit/admitkit/internal/versions"
	"github.com/admitkit/admitkit/pkg/apiserverauth"
	"github.com/admitkit/admitkit/pkg/webhook"
	"github.com/admitkit/admitkit/pkg/webhook/manifest"
)

// A Set has the generated files.
type Set struct {
	// Notes are messages for the user.
	Notes []string
	files []file
	form  string
}

type file struct {
	name    string // slash-separated path without extension
	comment string // first line of the file, or empty
	object  any
}

// Make generates the configurations for the hooks of a program.
func Make(ctx context.Context, p *gohooks.Program, o *Options) (*Set, error) {
	c, err := o.Configuration()
	if err != nil {
		return nil, err
	}
	mutating, validating, err := p.Describe(ctx, c)
	if err != nil {
		var registration *gohooks.RegistrationError
		if errors.As(err, &registration) && registration.LacksAddress() {
			return nil, problem.New("the hooks of %s have no address", p.Package).Hint("%s", o.whereHint())
		}
		return nil, inFlags(err)
	}
	s := &Set{form: o.form(), Notes: []string{counted(p)}}
	v, hasVersion := versions.Parse(o.Kubernetes)
	if hasVersion {
		s.withoutConditions(v, mutating, validating)
	}
	switch s.form {
	case V1beta1:
		err = s.v1beta1(mutating, validating)
	case Static:
		err = s.static(c, o.ServerDir, mutating, validating)
	default:
		s.add("mutating-webhook-configuration", mutating != nil, mutating)
		s.add("validating-webhook-configuration", validating != nil, validating)
	}
	if err != nil {
		return nil, err
	}
	if hasVersion && s.form != Static {
		if err := s.fit(v); err != nil {
			return nil, err
		}
	}
	if s.form != Static && (s.form == V1beta1 && !hasVersion || hasVersion && v.Before(versions.NameLabel)) {
		s.noteNameLabel(mutating, validating)
	}
	s.noteBundle(o, mutating, validating)
	return s, nil
}

func (s *Set) add(name string, there bool, object any) {
	if there {
		s.files = append(s.files, file{name: name, object: object})
	}
}

func (s *Set) note(format string, args ...any) {
	s.Notes = append(s.Notes, fmt.Sprintf(format, args...))
}

func counted(p *gohooks.Program) string {
	mutating := 0
	for _, h := range p.Hooks {
		if h.Mutating {
			mutating++
		}
	}
	return fmt.Sprintf("hooks in %s: %d mutating, %d validating", p.Package, mutating, len(p.Hooks)-mutating)
}

func (s *Set) v1beta1(mutating *admissionregistrationv1.MutatingWebhookConfiguration, validating *admissionregistrationv1.ValidatingWebhookConfiguration) error {
	oldMutating, oldValidating, err := manifest.V1beta1(mutating, validating)
	if err != nil {
		return problem.New("--form=v1beta1: %w", err).Hint("remove the matchConditions and check them in the handler")
	}
	s.add("mutating-webhook-configuration", oldMutating != nil, oldMutating)
	s.add("validating-webhook-configuration", oldValidating != nil, oldValidating)
	return nil
}

// noteNameLabel adds a note if a webhook excludes namespaces by the label that early API servers do not set.
func (s *Set) noteNameLabel(mutating *admissionregistrationv1.MutatingWebhookConfiguration, validating *admissionregistrationv1.ValidatingWebhookConfiguration) {
	for _, w := range selected(mutating, validating) {
		if namespaces := versions.ExcludedByName(w.namespaceSelector); len(namespaces) > 0 {
			s.note("before Kubernetes 1.21, namespaces have no label %s, so the namespaceSelector excludes no namespace: add the label to %s",
				corev1.LabelMetadataName, strings.Join(namespaces, ", "))
			break
		}
	}
}

func (s *Set) static(c webhook.ConfigurationOptions, serverDir string, mutating *admissionregistrationv1.MutatingWebhookConfiguration, validating *admissionregistrationv1.ValidatingWebhookConfiguration) error {
	for _, w := range selected(mutating, validating) {
		if w.coversConfigurations() {
			s.note("%s will also be called for webhook configurations, because it is static: while it fails, no client can change them", w.name)
		}
	}
	mutating, validating, err := manifest.Static(mutating, validating)
	if err != nil {
		return problem.New("--form=static: %w", err).Hint("remove clientConfig from the registration and give --url https://HOST:PORT")
	}
	name := strings.TrimSuffix(c.Name, manifest.StaticSuffix)
	o := apiserverauth.Options{}
	if mutating != nil {
		o.MutatingManifests = path.Join(serverDir, "mutating")
		s.add("mutating/"+name, true, mutating)
	}
	if validating != nil {
		o.ValidatingManifests = path.Join(serverDir, "validating")
		s.add("validating/"+name, true, validating)
	}
	text, _, err := apiserverauth.Files(o)
	if err != nil {
		return problem.New("--server-dir: %w", err)
	}
	var configuration map[string]any
	if err := yaml.Unmarshal(text, &configuration); err != nil {
		return err
	}
	s.files = append(s.files, file{"admission-configuration", "For the flag --admission-control-config-file of kube-apiserver.", configuration})
	s.note("Kubernetes 1.36 needs --feature-gates=ManifestBasedAdmissionControlConfig=true; earlier versions have no static manifests")
	return nil
}

// noteBundle adds a note if a webhook has no caBundle.
func (s *Set) noteBundle(o *Options, mutating *admissionregistrationv1.MutatingWebhookConfiguration, validating *admissionregistrationv1.ValidatingWebhookConfiguration) {
	without := slices.ContainsFunc(selected(mutating, validating), func(w selector) bool { return !w.hasBundle })
	switch {
	case !without || o.CertManager != "":
	case o.form() == Static:
		s.note("there is no caBundle: the API server verifies the hooks with its system roots; set another CA with --ca-file")
	default:
		s.note("there is no caBundle: add it with --ca-file or --cert-manager, or let the program that serves the hooks set it (pkg/certs)")
	}
}

// A selector has the fields of a mutating or validating webhook that notes depend on.
type selector struct {
	name              string
	namespaceSelector *metav1.LabelSelector
	rules             []admissionregistrationv1.RuleWithOperations
	hasBundle         bool
}

func selected(mutating *admissionregistrationv1.MutatingWebhookConfiguration, validating *admissionregistrationv1.ValidatingWebhookConfiguration) []selector {
	var all []selector
	if mutating != nil {
		for _, w := range mutating.Webhooks {
			all = append(all, selector{w.Name, w.NamespaceSelector, w.Rules, len(w.ClientConfig.CABundle) > 0})
		}
	}
	if validating != nil {
		for _, w := range validating.Webhooks {
			all = append(all, selector{w.Name, w.NamespaceSelector, w.Rules, len(w.ClientConfig.CABundle) > 0})
		}
	}
	return all
}

// coversConfigurations reports whether the rules match webhook configurations. The API server calls only static
// webhooks for those.
func (w *selector) coversConfigurations() bool {
	return slices.ContainsFunc(w.rules, func(r admissionregistrationv1.RuleWithOperations) bool {
		return containsAny(r.APIGroups, "*", admissionregistrationv1.GroupName) &&
			containsAny(r.Resources, "*", "*/*", "mutatingwebhookconfigurations", "validatingwebhookconfigurations") &&
			(r.Scope == nil || *r.Scope != admissionregistrationv1.NamespacedScope)
	})
}

func containsAny(all []string, some ...string) bool {
	return slices.ContainsFunc(some, func(one string) bool { return slices.Contains(all, one) })
}

// Write returns the files as one YAML stream, or as one JSON List.
func (s *Set) Write(form string) ([]byte, error) {
	if form == "json" {
		if s.form == Static {
			return nil, problem.New("static manifests have files of different kinds, which one JSON document cannot hold").Hint("--dir DIR")
		}
		list := struct {
			APIVersion string `json:"apiVersion"`
			Kind       string `json:"kind"`
			Items      []any  `json:"items"`
		}{APIVersion: "v1", Kind: "List"}
		for _, f := range s.files {
			list.Items = append(list.Items, f.object)
		}
		return indented(list)
	}
	var all bytes.Buffer
	for i, f := range s.files {
		if i > 0 {
			all.WriteString("---\n")
		}
		if s.form == Static {
			fmt.Fprintf(&all, "# File %s.yaml\n", f.name)
		}
		text, err := f.yaml()
		if err != nil {
			return nil, err
		}
		all.Write(text)
	}
	return all.Bytes(), nil
}

func (f *file) yaml() ([]byte, error) {
	text, err := yaml.Marshal(f.object)
	if err != nil {
		return nil, err
	}
	if f.comment != "" {
		text = append([]byte("# "+f.comment+"\n"), text...)
	}
	return text, nil
}

func indented(object any) ([]byte, error) {
	text, err := json.MarshalIndent(object, "", "  ")
	return append(text, '\n'), err
}
