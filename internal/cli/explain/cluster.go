// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"errors"
	"fmt"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/admitkit/admitkit/internal/cli/cluster"
	"github.com/admitkit/admitkit/internal/cli/objects"
	"github.com/admitkit/admitkit/internal/problem"
)

// A liveCluster is a connection to a cluster.
type liveCluster struct {
	config *rest.Config
	client kubernetes.Interface
}

// FromCluster returns the Facts about a cluster. The argument configurations has configurations from files, which
// replace those in the cluster with the same names. The argument more has namespaces and custom resource definitions
// from files, which the cluster may lack.
func FromCluster(ctx context.Context, where cluster.Flags, configurations, more []*objects.Object) (*Facts, error) {
	config, err := where.Config()
	if err != nil {
		return nil, err
	}
	return from(ctx, config, configurations, more)
}

func from(ctx context.Context, config *rest.Config, configurations, more []*objects.Object) (*Facts, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, problem.New("cannot use the kubeconfig: %w", err)
	}
	l := &liveCluster{config, client}
	w := newFacts("cluster")
	w.lookUp, w.resources, w.stored, w.noLimits = l.labels, l.resource, l.stored, l.noLimits
	w.authorizer = authorizer.AuthorizerFunc(l.authorize)
	if err := l.read(ctx, w); err != nil {
		return nil, err
	}
	own, err := objects.Sort(configurations)
	if err != nil {
		return nil, problem.New("%w", err)
	}
	if len(configurations) > 0 {
		w.Source = "cluster and files"
		if len(own.Mutating)+len(own.Validating) == 0 && !hasPolicy(configurations) {
			return nil, problem.New("there is no webhook configuration in these files")
		}
	}
	if err := w.addConfigurations(own); err != nil {
		return nil, err
	}
	known, err := objects.Sort(more)
	if err != nil {
		return nil, problem.New("%w", err)
	}
	w.addKnown(own)
	w.addKnown(known)
	return w, w.addPolicies(configurations, more)
}

// read reads the configurations, the definitions of custom resources, the version and the user.
func (l *liveCluster) read(ctx context.Context, w *Facts) error {
	registration := schema.GroupVersion{Group: "admissionregistration.k8s.io", Version: "v1"}
	var all []*objects.Object
	for _, resource := range []string{"mutatingwebhookconfigurations", "validatingwebhookconfigurations"} {
		found, err := cluster.List(ctx, l.config, registration.WithResource(resource))
		if err != nil {
			return err
		}
		all = append(all, found...)
	}
	definitions, err := cluster.List(ctx, l.config, schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	if err != nil && !apierrors.IsForbidden(err) { // without definitions, more results are unknown
		return err
	}
	sets, err := objects.Sort(append(all, definitions...))
	if err != nil {
		return problem.New("%w", err)
	}
	w.mutating, w.validating = objects.Values(sets.Mutating), objects.Values(sets.Validating)
	w.addKnown(sets)
	if err := l.readPolicies(ctx, w); err != nil {
		return err
	}
	version, err := l.client.Discovery().ServerVersion()
	if err != nil {
		return cluster.Explain(l.config, err)
	}
	w.Kubernetes = version.Major + "." + strings.TrimRight(version.Minor, "+")
	self, err := l.client.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return cluster.Explain(l.config, err)
	}
	info := self.Status.UserInfo
	w.user = &User{Name: info.Username, Groups: info.Groups, UID: &info.UID, Extra: map[string][]string{}}
	for key, values := range info.Extra {
		w.user.Extra[key] = values
	}
	return nil
}

func (l *liveCluster) labels(ctx context.Context, name string) (map[string]string, error) {
	namespace, err := l.client.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, problem.New("it is not in the cluster, so an API server would reject the request").Hint("kubectl create namespace %s", name).Hint("--namespace-labels KEY=VALUE,..., to explain as if it existed")
	}
	if err != nil {
		return nil, cluster.Explain(l.config, err)
	}
	return namespace.Labels, nil
}

// stored reads the stored object for an update.
func (l *liveCluster) stored(ctx context.Context, gvr schema.GroupVersionResource, namespace, name string) (*objects.Object, error) {
	client, err := dynamic.NewForConfig(l.config)
	if err != nil {
		return nil, problem.New("cannot use the kubeconfig: %w", err)
	}
	var of dynamic.ResourceInterface = client.Resource(gvr)
	if namespace != "" {
		of = client.Resource(gvr).Namespace(namespace)
	}
	u, err := of.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, problem.New("there is no %s %s in the cluster to update", gvr.Resource, name).Hint("--operation CREATE").Hint("--old FILE")
	}
	if err != nil {
		return nil, cluster.Explain(l.config, err)
	}
	return objects.Of(u, u.GroupVersionKind())
}

// resource asks the discovery API of the cluster for the resource of a kind.
func (l *liveCluster) resource(kind schema.GroupVersionKind) (schema.GroupVersionResource, bool, error) {
	list, err := l.client.Discovery().ServerResourcesForGroupVersion(kind.GroupVersion().String())
	if err != nil && !apierrors.IsNotFound(err) {
		return schema.GroupVersionResource{}, false, cluster.Explain(l.config, err)
	}
	if err == nil {
		for _, r := range list.APIResources {
			if r.Kind == kind.Kind && !strings.Contains(r.Name, "/") {
				return kind.GroupVersion().WithResource(r.Name), r.Namespaced, nil
			}
		}
	}
	return schema.GroupVersionResource{}, false, problem.New("the cluster does not serve a %s of %s", kind.Kind, kind.GroupVersion()).Hint("kubectl api-resources").
		Hint("-f with its CustomResourceDefinition, to explain as if it existed")
}

// authorize answers an authorizer check of a condition with a SubjectAccessReview, which it sends to the cluster.
func (l *liveCluster) authorize(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	spec := authorizationv1.SubjectAccessReviewSpec{User: a.GetUser().GetName(), UID: a.GetUser().GetUID(), Groups: a.GetUser().GetGroups()}
	for key, values := range a.GetUser().GetExtra() {
		if spec.Extra == nil {
			spec.Extra = map[string]authorizationv1.ExtraValue{}
		}
		spec.Extra[key] = values
	}
	if a.IsResourceRequest() {
		spec.ResourceAttributes = &authorizationv1.ResourceAttributes{Namespace: a.GetNamespace(), Verb: a.GetVerb(), Group: a.GetAPIGroup(),
			Version: a.GetAPIVersion(), Resource: a.GetResource(), Subresource: a.GetSubresource(), Name: a.GetName()}
		if err := selectors(a, spec.ResourceAttributes); err != nil {
			return authorizer.DecisionNoOpinion, "", err
		}
	} else {
		spec.NonResourceAttributes = &authorizationv1.NonResourceAttributes{Path: a.GetPath(), Verb: a.GetVerb()}
	}
	review, err := l.client.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{Spec: spec}, metav1.CreateOptions{})
	switch {
	case err != nil:
		return authorizer.DecisionNoOpinion, "", cluster.Explain(l.config, err)
	case review.Status.Allowed:
		return authorizer.DecisionAllow, review.Status.Reason, nil
	case review.Status.EvaluationError != "":
		return authorizer.DecisionNoOpinion, "", errors.New(review.Status.EvaluationError)
	case review.Status.Denied:
		return authorizer.DecisionDeny, review.Status.Reason, nil
	}
	return authorizer.DecisionNoOpinion, fmt.Sprint(review.Status.Reason), nil
}

// selectors copies the field and label selectors of an authorizer check to the SubjectAccessReview. It fails if a
// selector has an operator that a SubjectAccessReview cannot express.
func selectors(a authorizer.Attributes, into *authorizationv1.ResourceAttributes) error {
	byField, err := a.GetFieldSelector()
	if err != nil {
		return fmt.Errorf("fieldSelector: %w", err)
	}
	for _, r := range byField {
		operator := map[selection.Operator]metav1.FieldSelectorOperator{selection.Equals: metav1.FieldSelectorOpIn, selection.DoubleEquals: metav1.FieldSelectorOpIn,
			selection.NotEquals: metav1.FieldSelectorOpNotIn}[r.Operator]
		if into.FieldSelector == nil {
			into.FieldSelector = &authorizationv1.FieldSelectorAttributes{}
		}
		into.FieldSelector.Requirements = append(into.FieldSelector.Requirements, metav1.FieldSelectorRequirement{Key: r.Field, Operator: operator, Values: []string{r.Value}})
	}
	byLabel, err := a.GetLabelSelector()
	if err != nil {
		return fmt.Errorf("labelSelector: %w", err)
	}
	for _, r := range byLabel {
		requirement := metav1.LabelSelectorRequirement{Key: r.Key(), Values: r.ValuesUnsorted()}
		switch r.Operator() {
		case selection.Equals, selection.DoubleEquals, selection.In:
			requirement.Operator = metav1.LabelSelectorOpIn
		case selection.NotEquals, selection.NotIn:
			requirement.Operator = metav1.LabelSelectorOpNotIn
		case selection.Exists:
			requirement.Operator = metav1.LabelSelectorOpExists
		case selection.DoesNotExist:
			requirement.Operator = metav1.LabelSelectorOpDoesNotExist
		default: // a SubjectAccessReview cannot express this operator
			return fmt.Errorf("labelSelector %s", r.String())
		}
		if into.LabelSelector == nil {
			into.LabelSelector = &authorizationv1.LabelSelectorAttributes{}
		}
		into.LabelSelector.Requirements = append(into.LabelSelector.Requirements, requirement)
	}
	return nil
}

// readPolicies reads the policies and their bindings in the newest version that the cluster serves.
func (l *liveCluster) readPolicies(ctx context.Context, w *Facts) error {
	w.policies.params = l.params
	var hidden []string // resources that the user may not list
	for _, resource := range []string{"mutatingadmissionpolicies", "validatingadmissionpolicies"} {
		version, found, err := l.newest(ctx, resource)
		switch {
		case apierrors.IsForbidden(err):
			hidden = append(hidden, resource)
			continue
		case err != nil:
			return err
		case version == "":
			continue // no version is served, so there are none
		}
		of := strings.TrimSuffix(resource, "policies") + "policybindings"
		bindings, err := cluster.List(ctx, l.config, schema.GroupVersionResource{Group: admissionregistrationv1.GroupName, Version: version, Resource: of})
		switch {
		case apierrors.IsForbidden(err) || apierrors.IsNotFound(err):
			w.policies.unbound = true
			hidden = append(hidden, of)
		case err != nil:
			return err
		}
		if err := w.policies.add(append(found, bindings...)); err != nil {
			return err
		}
	}
	if w.policies.known = len(hidden) == 0; !w.policies.known {
		w.notes = append(w.notes, fmt.Sprintf("some admission policies are unknown: you have no permission to list %s", list(hidden, "and")))
	}
	return nil
}

// newest lists the objects of a resource in the newest version that the cluster serves. The version is empty if it serves
// none.
func (l *liveCluster) newest(ctx context.Context, resource string) (string, []*objects.Object, error) {
	for _, version := range []string{"v1", "v1beta1", "v1alpha1"} {
		all, err := cluster.List(ctx, l.config, schema.GroupVersionResource{Group: admissionregistrationv1.GroupName, Version: version, Resource: resource})
		if !apierrors.IsNotFound(err) {
			return version, all, err
		}
	}
	return "", nil, nil
}

// params reads one object, or all objects of a kind in a namespace.
func (l *liveCluster) params(ctx context.Context, params paramsOf) ([]*unstructured.Unstructured, error) {
	resource, namespaced, err := l.resource(params.kind)
	if err != nil {
		return nil, err
	}
	client, err := dynamic.NewForConfig(l.config)
	if err != nil {
		return nil, err
	}
	var of dynamic.ResourceInterface = client.Resource(resource)
	switch {
	case namespaced && params.namespace == "":
		return nil, nil // the API server does not read any either
	case namespaced:
		of = client.Resource(resource).Namespace(params.namespace)
	}
	if params.name != "" {
		one, err := of.Get(ctx, params.name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		return []*unstructured.Unstructured{one}, nil
	}
	var all []*unstructured.Unstructured
	err = cluster.Pages(ctx, of, metav1.ListOptions{}, func(page []unstructured.Unstructured) error {
		for i := range page {
			all = append(all, &page[i])
		}
		return nil
	})
	return all, err
}
