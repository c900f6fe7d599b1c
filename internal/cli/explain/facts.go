// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/admitkit/admitkit/internal/cli/objects"
	"github.com/admitkit/admitkit/internal/problem"
)

// Facts is what explain knows about an API server: its webhooks, namespaces, resources and users.
type Facts struct {
	mutating    []*admissionregistrationv1.MutatingWebhookConfiguration
	validating  []*admissionregistrationv1.ValidatingWebhookConfiguration
	definitions []*apiextensionsv1.CustomResourceDefinition
	// namespaces has the labels of known namespaces.
	namespaces map[string]map[string]string
	// lookUp reads the labels of another namespace from a cluster.
	lookUp func(ctx context.Context, name string) (map[string]string, error)
	// resources finds the resource of a kind in a cluster.
	resources func(schema.GroupVersionKind) (gvr schema.GroupVersionResource, namespaced bool, err error)
	// stored reads an object from a cluster.
	stored func(ctx context.Context, gvr schema.GroupVersionResource, namespace, name string) (*objects.Object, error)
	// authorizer answers the authorizer checks of conditions. If nil, only checks for system:masters have a known
	// answer.
	authorizer authorizer.Authorizer
	// noLimits reports whether a namespace of a cluster is known to have no LimitRange.
	noLimits func(ctx context.Context, namespace string) (bool, error)
	policies policies
	// notes report objects that could not be read.
	notes []string
	// origins has the files and lines of configurations, for errors about them.
	origins map[string]string
	// user is the user of requests, unless the flags name one.
	user *User

	Source     string
	Kubernetes string
}

// A User is the user of a request.
type User struct {
	Name   string
	Groups []string
	// UID and Extra are nil if they are unknown.
	UID   *string
	Extra map[string][]string
}

// defaultVersion is the Kubernetes version of the libraries in this program.
const defaultVersion = "1.36"

// FromFiles returns the Facts from files. The argument more has namespaces and custom resource definitions.
func FromFiles(configurations, more []*objects.Object) (*Facts, error) {
	w := newFacts("files")
	sets, err := objects.Sort(configurations)
	if err != nil {
		return nil, problem.New("%w", err)
	}
	if len(sets.Mutating)+len(sets.Validating) == 0 && !hasPolicy(configurations) {
		return nil, problem.New("there is no webhook configuration in these files").Hint("kubectl get mutatingwebhookconfigurations,validatingwebhookconfigurations -o yaml > webhooks.yaml")
	}
	if err := w.addConfigurations(sets); err != nil {
		return nil, err
	}
	w.addKnown(sets)
	known, err := objects.Sort(more)
	if err != nil {
		return nil, problem.New("%w", err)
	}
	w.addKnown(known)
	w.policies.unbound = true // the bindings may be in other files
	return w, w.addPolicies(configurations, more)
}

// addPolicies adds the policies, bindings and parameters from files. They replace those of the cluster with the same
// names.
func (w *Facts) addPolicies(configurations, more []*objects.Object) error {
	all := append(slices.Clone(configurations), more...)
	for _, o := range all {
		if !isPolicy(o) || w.origins[o.GVK.Kind+" "+o.Name] == o.Where() { // the same file can be read twice
			continue
		}
		if err := w.from(o.GVK.Kind, o.Name, o.Where()); err != nil {
			return err
		}
		var alone policies
		if err := alone.add([]*objects.Object{o}); err != nil {
			return err
		}
		if err := alone.check(); err != nil {
			return problem.New("%s: the API server would reject it: %w", o.Where(), err)
		}
	}
	if err := w.policies.add(all); err != nil {
		return err
	}
	if w.policies.broken = w.policies.check(); w.policies.broken != nil {
		w.notes = append(w.notes, fmt.Sprintf("admission policies are not evaluated, because this version of admitkit cannot read all of them: %v", w.policies.broken))
	}
	return nil
}

func newFacts(source string) *Facts {
	return &Facts{Source: source, Kubernetes: defaultVersion, namespaces: map[string]map[string]string{}, origins: map[string]string{}}
}

// addConfigurations adds the configurations from files. They replace the configurations of the cluster with the same
// names.
func (w *Facts) addConfigurations(sets *objects.Sets) error {
	for _, c := range sets.Mutating {
		if err := w.from("MutatingWebhookConfiguration", c.Value.Name, c.Where()); err != nil {
			return err
		}
		w.mutating = replace(w.mutating, c.Value)
	}
	for _, c := range sets.Validating {
		if err := w.from("ValidatingWebhookConfiguration", c.Value.Name, c.Where()); err != nil {
			return err
		}
		w.validating = replace(w.validating, c.Value)
	}
	sortByName(w.mutating)
	sortByName(w.validating)
	return nil
}

// replace adds an object to a list, and removes the one with the same name.
func replace[T metav1.Object](all []T, one T) []T {
	return append(slices.DeleteFunc(all, func(other T) bool { return other.GetName() == one.GetName() }), one)
}

func sortByName[T metav1.Object](all []T) {
	slices.SortFunc(all, func(a, b T) int { return cmp.Compare(a.GetName(), b.GetName()) })
}

func (w *Facts) from(kind, name, where string) error {
	if before, twice := w.origins[kind+" "+name]; twice {
		return problem.New("%s: %s %s already exists at %s", where, kind, name, before)
	}
	w.origins[kind+" "+name] = where
	return nil
}

// addKnown adds namespaces and custom resource definitions.
func (w *Facts) addKnown(sets *objects.Sets) {
	for _, n := range sets.Namespaces {
		w.namespaces[n.Value.Name] = n.Value.Labels
	}
	for _, d := range sets.CRDs {
		if !slices.ContainsFunc(w.definitions, func(other *apiextensionsv1.CustomResourceDefinition) bool { return other.Name == d.Value.Name }) {
			w.definitions = append(w.definitions, d.Value)
		}
	}
}

// definition returns the definition of a custom resource, or nil.
func (w *Facts) definition(match func(*apiextensionsv1.CustomResourceDefinition) bool) *apiextensionsv1.CustomResourceDefinition {
	if i := slices.IndexFunc(w.definitions, match); i >= 0 {
		return w.definitions[i]
	}
	return nil
}

// isStatic reports whether a configuration is from a static manifest. The names of static configurations have a
// reserved suffix.
func isStatic(configuration string) bool { return strings.HasSuffix(configuration, ".static.k8s.io") }

// An authorizerCheck is a permission that Allow sets. It describes which authorizer checks are allowed. Conditions make
// such checks with the CEL variable authorizer.
type authorizerCheck struct{ verb, group, resource, subresource, namespace, name, path string }

// Allow sets the permissions of the user for authorizer checks, each as
// VERB:RESOURCE[.GROUP][/SUBRESOURCE][@NAMESPACE[/NAME]] or VERB:/PATH. A * matches anything. The user has no other
// permissions. As in RBAC, a permission without selectors covers requests with selectors.
func (w *Facts) Allow(rules []string) error {
	var all []authorizerCheck
	for _, rule := range rules {
		verb, what, ok := strings.Cut(rule, ":")
		if !ok || verb == "" || what == "" {
			return problem.New("--allow %s: want VERB:RESOURCE[.GROUP][/SUBRESOURCE][@NAMESPACE[/NAME]] or VERB:/PATH, as in get:deployments.apps/scale@shop", rule)
		}
		q := authorizerCheck{verb: verb}
		if strings.HasPrefix(what, "/") {
			q.path = what
		} else {
			what, where, limited := strings.Cut(what, "@")
			q.namespace, q.name, _ = strings.Cut(where, "/")
			if !limited {
				q.namespace = "*"
			}
			what, q.subresource, _ = strings.Cut(what, "/")
			q.resource, q.group, _ = strings.Cut(what, ".")
			if what == "*" {
				q.group = "*"
			}
		}
		all = append(all, q)
	}
	w.authorizer = authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
		if slices.Contains(a.GetUser().GetGroups(), "system:masters") || slices.ContainsFunc(all, func(q authorizerCheck) bool { return q.covers(a) }) {
			return authorizer.DecisionAllow, "", nil
		}
		return authorizer.DecisionNoOpinion, "", nil
	})
	return nil
}

func (q authorizerCheck) covers(a authorizer.Attributes) bool {
	is := func(allowed, asked string) bool { return allowed == "*" || allowed == asked }
	if !a.IsResourceRequest() {
		return q.path != "" && is(q.verb, a.GetVerb()) && (q.path == "/*" || q.path == a.GetPath())
	}
	return q.path == "" && is(q.verb, a.GetVerb()) && is(q.group, a.GetAPIGroup()) && is(q.resource, a.GetResource()) && is(q.subresource, a.GetSubresource()) &&
		is(q.namespace, a.GetNamespace()) && (q.name == "" || is(q.name, a.GetName()))
}

// labelsOf returns the labels of a namespace. known is false if they are unknown.
func (w *Facts) labelsOf(ctx context.Context, name string) (labels map[string]string, known bool, err error) {
	if labels, known = w.namespaces[name]; known || w.lookUp == nil {
		return labels, known, nil
	}
	labels, err = w.lookUp(ctx, name)
	if apierrors.IsForbidden(err) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("namespace %s: %w", name, err)
	}
	w.namespaces[name] = labels
	return labels, true, nil
}
