// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/admitkit/admitkit/pkg/webhook"
)

// A Config is the content of the file, in YAML or JSON:
//
//	hooks:
//	- webhook: images.example.com
//	  mode: Shadow
//	  rules:
//	  - namespaces: {matchLabels: {team: platform}}
//	    mode: Enforce
//	  - percent: 10
//	    mode: Warn
type Config struct {
	// Hooks has an entry for each webhook that does not always enforce. A webhook without an entry enforces.
	Hooks []Hook `json:"hooks"`
}

// A Hook sets the modes of one webhook.
type Hook struct {
	// Webhook is the name of the webhook in its configuration. It is required.
	Webhook string `json:"webhook"`
	// Mode is the mode of requests that neither a label nor a rule matches. Empty means Enforce.
	Mode webhook.Mode `json:"mode,omitempty"`
	// NamespaceLabels is the domain of three labels of Namespaces, which are like those of PodSecurity: DOMAIN/enforce,
	// DOMAIN/warn and DOMAIN/audit, where audit means Shadow. The first label in this order that applies to Version
	// decides. Labels take precedence over Rules. Empty means that labels are not read.
	NamespaceLabels string `json:"namespaceLabels,omitempty"`
	// Version is the version of the policy in this program, such as v3. A label with the value v2 applies to v2 and
	// earlier, and one with the value latest to all versions. If another value is no version, DOMAIN/enforce applies to all
	// versions, and the other labels do not apply. Version is required with NamespaceLabels.
	Version string `json:"version,omitempty"`
	// Rules are tried in this order. The first one that matches a request decides.
	Rules []Rule `json:"rules,omitempty"`
}

// A Rule chooses the mode of requests that match all of its fields.
type Rule struct {
	// Namespaces selects namespaces by their labels. It never matches a cluster-scoped object. Nil matches everything.
	Namespaces *metav1.LabelSelector `json:"namespaces,omitempty"`
	// Operations lists operations. Empty matches all.
	Operations []admissionv1.Operation `json:"operations,omitempty"`
	// Percent is the share of namespaces or owners that the rule matches, from 0 to 100. A hash of the name decides, so
	// 50 percent include all that 10 percent match. Nil matches all.
	Percent *int32 `json:"percent,omitempty"`
	// Of selects what Percent counts: Namespaces, the default, or Owners. It must be empty without Percent.
	Of Share `json:"of,omitempty"`
	// Mode is required.
	Mode webhook.Mode `json:"mode"`

	selector labels.Selector // of Namespaces
}

// A Share selects what a percentage counts.
type Share string

// The values of Rule.Of.
const (
	// Namespaces makes a rule match all objects of a namespace, or none. A cluster-scoped object counts by its own name.
	Namespaces Share = "Namespaces"
	// Owners makes a rule match all objects of a controller, such as the Pods of a ReplicaSet, or none. An object without
	// a controller counts by its namespace. A user can write any owner reference, so do not use Owners for a policy that
	// users may try to avoid.
	Owners Share = "Owners"
)

// parse parses and validates a configuration. Entries may be for the webhooks named in hooks only. The error names each
// invalid field.
func parse(content []byte, hooks []string) (*Config, error) {
	config := &Config{}
	if moreDocuments().Match(bytes.TrimLeft(content, "-\n\r ")) {
		return nil, errors.New("the file has several documents: keep one")
	}
	if err := yaml.UnmarshalStrict(content, config); err != nil {
		return nil, err
	}
	var errs field.ErrorList
	if config.Hooks == nil { // an empty file must not make all hooks enforce
		errs = append(errs, field.Required(field.NewPath("hooks"), "to let all hooks enforce, write hooks: []"))
	}
	known := map[string]bool{}
	for i := range config.Hooks {
		at := field.NewPath("hooks").Index(i)
		h := &config.Hooks[i]
		switch {
		case h.Webhook == "":
			errs = append(errs, field.Required(at.Child("webhook"), "name one of the hooks: "+strings.Join(hooks, ", ")))
		case known[h.Webhook]:
			errs = append(errs, field.Duplicate(at.Child("webhook"), h.Webhook))
		case !slices.Contains(hooks, h.Webhook):
			errs = append(errs, field.NotSupported(at.Child("webhook"), h.Webhook, hooks))
		}
		known[h.Webhook] = true
		errs = append(errs, h.check(at)...)
	}
	if len(errs) > 0 {
		return nil, errs.ToAggregate()
	}
	return config, nil
}

// moreDocuments matches the separator of YAML documents.
var moreDocuments = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?m)^---(\s|$)`) })

var modes = []webhook.Mode{webhook.Enforce, webhook.Warn, webhook.Shadow}

func (h *Hook) check(at *field.Path) (errs field.ErrorList) {
	if h.Mode == "" {
		h.Mode = webhook.Enforce
	}
	if !slices.Contains(modes, h.Mode) {
		errs = append(errs, field.NotSupported(at.Child("mode"), h.Mode, modes))
	}
	if h.NamespaceLabels != "" {
		for _, problem := range validation.IsDNS1123Subdomain(h.NamespaceLabels) {
			errs = append(errs, field.Invalid(at.Child("namespaceLabels"), h.NamespaceLabels, problem))
		}
		if h.Version == "" {
			errs = append(errs, field.Required(at.Child("version"), "set the version of the policy, such as v1, to compare it with the values of the labels"))
		}
	}
	if _, err := parseVersion(h.Version); h.Version != "" && err != nil {
		errs = append(errs, field.Invalid(at.Child("version"), h.Version, err.Error()))
	}
	for i := range h.Rules {
		errs = append(errs, h.Rules[i].check(at.Child("rules").Index(i))...)
	}
	return errs
}

func (r *Rule) check(at *field.Path) (errs field.ErrorList) {
	if !slices.Contains(modes, r.Mode) {
		errs = append(errs, field.NotSupported(at.Child("mode"), r.Mode, modes))
	}
	if r.Namespaces != nil {
		var err error
		if r.selector, err = metav1.LabelSelectorAsSelector(r.Namespaces); err != nil {
			errs = append(errs, field.Invalid(at.Child("namespaces"), fmt.Sprintf("%+v", *r.Namespaces), err.Error()))
		}
	}
	operations := []admissionv1.Operation{admissionv1.Create, admissionv1.Update, admissionv1.Delete, admissionv1.Connect}
	for i, op := range r.Operations {
		if !slices.Contains(operations, op) {
			errs = append(errs, field.NotSupported(at.Child("operations").Index(i), op, operations))
		}
	}
	if r.Percent != nil && (*r.Percent < 0 || *r.Percent > 100) {
		errs = append(errs, field.Invalid(at.Child("percent"), *r.Percent, "must be from 0 to 100"))
	}
	switch {
	case r.Of == "": // means Namespaces
	case r.Of != Namespaces && r.Of != Owners:
		errs = append(errs, field.NotSupported(at.Child("of"), r.Of, []Share{Namespaces, Owners}))
	case r.Percent == nil:
		errs = append(errs, field.Required(at.Child("percent"), "of has no effect without percent: set percent, or remove of"))
	}
	return errs
}

// readsNamespaces reports whether a rule needs the labels of a Namespace.
func (c *Config) readsNamespaces() bool {
	return slices.ContainsFunc(c.Hooks, func(h Hook) bool {
		return h.NamespaceLabels != "" || slices.ContainsFunc(h.Rules, func(r Rule) bool { return r.Namespaces != nil })
	})
}
