// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admitkit/admitkit/pkg/webhook/internal/registration"
)

// A Workload is a custom kind whose objects have one Pod template. A kind with several templates, or with templates in
// a list, such as a JobSet, needs a hook of its own.
type Workload struct {
	// Kind is the kind of the objects, with group and version. It is required.
	Kind metav1.GroupVersionKind
	// Resource is the plural name in rules, such as "rollouts". It is required.
	Resource string
	// Path is the path of the Pod template in an object, as field names with dots between them, such as
	// "spec.template". It is required.
	Path string
}

// workloads are the built-in kinds with a Pod template. The path of a Pod is empty, because the Pod itself has the
// metadata and the spec of a template.
var workloads = []Workload{
	{kindOf("", "v1", "Pod"), "pods", ""},
	{kindOf("", "v1", "PodTemplate"), "podtemplates", "template"},
	{kindOf("", "v1", "ReplicationController"), "replicationcontrollers", "spec.template"},
	{kindOf("apps", "v1", "ReplicaSet"), "replicasets", "spec.template"},
	{kindOf("apps", "v1", "Deployment"), "deployments", "spec.template"},
	{kindOf("apps", "v1", "StatefulSet"), "statefulsets", "spec.template"},
	{kindOf("apps", "v1", "DaemonSet"), "daemonsets", "spec.template"},
	{kindOf("batch", "v1", "Job"), "jobs", "spec.template"},
	{kindOf("batch", "v1", "CronJob"), "cronjobs", "spec.jobTemplate.spec.template"},
}

func kindOf(group, version, kind string) metav1.GroupVersionKind {
	return metav1.GroupVersionKind{Group: group, Version: version, Kind: kind}
}

// MutatingPodTemplates returns a hook that calls mutate with the Pod template of each PodTemplate,
// ReplicationController, ReplicaSet, Deployment, StatefulSet, DaemonSet, Job, CronJob and custom workload. It also
// calls mutate with each Pod, which counts as its own template. It decodes and patches only the template.
//
// In the Request, Object and OldObject hold the template. Kind, Name and Namespace are those of the API object,
// [Request.Controller] is its owner, and [Request.FieldPath] is the path of the template. The name of a template is
// empty, apart from that of a Pod. If an object has no template, the call fails with an error that names the path.
//
// The handler is not called for an UPDATE that changes neither labels, annotations nor spec of the template. So a new
// version of a hook starts no rollout when a controller changes other fields, and cannot keep a finalizer from being
// removed.
//
// If the registration has no rules, it gets rules for CREATE of Pods and Jobs, whose templates are immutable, and for
// CREATE and UPDATE of PodTemplates, Deployments, StatefulSets, DaemonSets, CronJobs and the custom workloads. It gets
// none for ReplicaSets and ReplicationControllers: the Deployment controller would not recognise a ReplicaSet that
// differs from its Deployment, and would create another one again and again. Their Pods are still changed. Rules of
// your own may leave kinds out.
func MutatingPodTemplates(reg admissionregistrationv1.MutatingWebhook, mutate func(context.Context, *Request[corev1.PodTemplateSpec]) error, custom ...Workload) *Hook {
	rules := append(Rules(OnCreate("", "v1", "pods"), OnWrite("", "v1", "podtemplates"),
		OnWrite("apps", "v1", "deployments", "statefulsets", "daemonsets"),
		OnCreate("batch", "v1", "jobs"), OnWrite("batch", "v1", "cronjobs")), customRules(custom)...)
	return templatesHook(registration.FromMutating(reg), mutate, custom, rules)
}

// ValidatingPodTemplates is [MutatingPodTemplates] for a validating hook. Changes of the template are
// discarded. If the registration has no rules, it gets rules for CREATE and UPDATE of all these kinds, and for
// UPDATE of pods/ephemeralcontainers and pods/resize.
func ValidatingPodTemplates(reg admissionregistrationv1.ValidatingWebhook, validate func(context.Context, *Request[corev1.PodTemplateSpec]) error, custom ...Workload) *Hook {
	rules := append(Rules(OnCreate("", "v1", "pods"), OnUpdate("", "v1", "pods", "pods/ephemeralcontainers", "pods/resize"),
		OnWrite("", "v1", "podtemplates", "replicationcontrollers"),
		OnWrite("apps", "v1", "replicasets", "deployments", "statefulsets", "daemonsets"),
		OnWrite("batch", "v1", "jobs", "cronjobs")), customRules(custom)...)
	return templatesHook(registration.FromValidating(reg), validate, custom, rules)
}

func customRules(custom []Workload) (rules []admissionregistrationv1.RuleWithOperations) {
	for _, w := range custom {
		rules = append(rules, OnWrite(w.Kind.Group, w.Kind.Version, w.Resource))
	}
	return rules
}

func templatesHook(reg *registration.Registration, handle func(context.Context, *Request[corev1.PodTemplateSpec]) error, custom []Workload, rules []admissionregistrationv1.RuleWithOperations) *Hook {
	if len(reg.Rules) == 0 {
		reg.SetRules(rules)
	}
	all := append(slices.Clone(workloads), custom...)
	handle = onChange(handle)
	var handlers []KindHandler
	var handled []registration.Handled
	var errs field.ErrorList
	for i, w := range all {
		v := &view{path: strings.Split(w.Path, ".")}
		if w.Path == "" {
			v = &view{unknown: unknownIn[corev1.Pod]}
		}
		k := onPart(handle, v).WithKinds(w.Kind)
		k.handled.Resource = w.Resource
		handlers, handled = append(handlers, k), append(handled, k.handled)
		if i >= len(workloads) {
			errs = append(errs, w.validate(reg.FieldPath().Child("workloads").Index(i-len(workloads)))...)
		}
	}
	h := handlersHook(reg, handlers)
	h.errs.handler = errors.Join(h.errs.handler, registration.JoinFields(errs))
	h.errs.ruleMismatch = reg.CheckResources(handled)
	return h.checked()
}

// onChange returns a handler that admits an UPDATE if it does not change the template, and otherwise calls handle.
func onChange(handle func(context.Context, *Request[corev1.PodTemplateSpec]) error) func(context.Context, *Request[corev1.PodTemplateSpec]) error {
	if handle == nil {
		return nil
	}
	return func(ctx context.Context, req *Request[corev1.PodTemplateSpec]) error {
		if req.Operation == admissionv1.Update {
			if old, err := req.OldObject(); err == nil && sameTemplate(old, req.Object) {
				return nil
			}
		}
		return handle(ctx, req)
	}
}

// sameTemplate reports whether two templates have the same labels, annotations and spec. Pods get nothing else from a
// template. Other metadata, such as the finalizers of a Pod, does not count.
func sameTemplate(a, b *corev1.PodTemplateSpec) bool {
	return maps.Equal(a.Labels, b.Labels) && maps.Equal(a.Annotations, b.Annotations) && equality.Semantic.DeepEqual(a.Spec, b.Spec)
}

func (w Workload) validate(at *field.Path) (errs field.ErrorList) {
	for name, value := range map[string]string{"kind.version": w.Kind.Version, "kind.kind": w.Kind.Kind, "resource": w.Resource, "path": w.Path} {
		if value == "" {
			errs = append(errs, field.Required(at.Child(name), "set it: kind and resource name the objects, and path names the field with their Pod template"))
		}
	}
	if w.Path != "" && slices.Contains(strings.Split(w.Path, "."), "") {
		errs = append(errs, field.Invalid(at.Child("path"), w.Path, "must be field names with dots between them, such as spec.template"))
	}
	slices.SortFunc(errs, func(a, b *field.Error) int { return strings.Compare(a.Field, b.Field) })
	return errs
}
