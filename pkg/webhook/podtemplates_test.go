// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admitkit/admitkit/pkg/webhook"
)

// A workloadKind is a kind with a Pod template at a path. kind and resource have the form "group/version/Kind" and
// "group/version/resource".
type workloadKind struct{ kind, resource, path string }

var workloadKinds = []workloadKind{
	{"/v1/Pod", "/v1/pods", ""},
	{"/v1/PodTemplate", "/v1/podtemplates", "template"},
	{"/v1/ReplicationController", "/v1/replicationcontrollers", "spec.template"},
	{"apps/v1/ReplicaSet", "apps/v1/replicasets", "spec.template"},
	{"apps/v1/Deployment", "apps/v1/deployments", "spec.template"},
	{"apps/v1/StatefulSet", "apps/v1/statefulsets", "spec.template"},
	{"apps/v1/DaemonSet", "apps/v1/daemonsets", "spec.template"},
	{"batch/v1/Job", "batch/v1/jobs", "spec.template"},
	{"batch/v1/CronJob", "batch/v1/cronjobs", "spec.jobTemplate.spec.template"},
	{"example.com/v2/Rollout", "example.com/v2/rollouts", "spec.canary.template"},
}

var rollout = webhook.Workload{Kind: gvk("example.com/v2/Rollout"), Resource: "rollouts", Path: "spec.canary.template"}

const theTemplate = `{"new":1,"metadata":{"labels":{"app":"web"},"new":2},"spec":{"new":3,"containers":[{"name":"app","image":"app:1","new":4},{"name":"log","image":"log:1","new":5}]}}`

// object returns an object with a template at the path of the kind, and unknown fields everywhere.
func (k workloadKind) object(template string) string {
	p := split(k.kind)
	version := strings.TrimPrefix(p[0]+"/"+p[1], "/")
	head := fmt.Sprintf(`{"apiVersion":%q,"kind":%q,`, version, p[2])
	if k.path == "" {
		return head + template[1:]
	}
	names := strings.Split(k.path, ".")
	for _, name := range slices.Backward(names) {
		template = fmt.Sprintf(`{"before":[{"template":1}],%q:%s,"after":"}"}`, name, template)
	}
	return head + `"metadata":{"name":"web"},` + template[1:]
}

func (k workloadKind) call(operation admissionv1.Operation, object, old string) call {
	return call{kind: k.kind, resource: k.resource, operation: operation, object: object, oldObject: old}
}

// templates returns a mutating hook for Pod templates with rules for all kinds, including those that the default rules
// leave out.
func templates(f func(*webhook.Request[corev1.PodTemplateSpec]) error) *webhook.Hook {
	rules := webhook.Rules(webhook.OnWrite("", "v1", "pods", "podtemplates", "replicationcontrollers"),
		webhook.OnWrite("apps", "v1", "replicasets", "deployments", "statefulsets", "daemonsets"),
		webhook.OnWrite("batch", "v1", "jobs", "cronjobs"), webhook.OnWrite("example.com", "v2", "rollouts"))
	return webhook.MutatingPodTemplates(admissionregistrationv1.MutatingWebhook{Name: "templates.example.com", Rules: rules},
		func(_ context.Context, req *webhook.Request[corev1.PodTemplateSpec]) error { return f(req) }, rollout)
}

// TestPodTemplatesOfAllKinds changes the template of an object of each kind. The patched object must have exactly these
// changes, and the patch must contain only paths inside the template.
func TestPodTemplatesOfAllKinds(t *testing.T) {
	hook := templates(func(req *webhook.Request[corev1.PodTemplateSpec]) error {
		req.Object.Labels["seen"] = "yes"
		c := &req.Object.Spec.Containers
		(*c)[1].ImagePullPolicy = corev1.PullAlways
		*c = append([]corev1.Container{{Name: "first", Image: "first:1"}}, *c...)
		return nil
	})
	if err := hook.Check(); err != nil {
		t.Fatal(err)
	}
	const changed = `{"new":1,"metadata":{"labels":{"app":"web","seen":"yes"},"new":2},"spec":{"new":3,"containers":[{"name":"first","image":"first:1","resources":{}},{"name":"app","image":"app:1","new":4},{"name":"log","image":"log:1","new":5,"imagePullPolicy":"Always"}]}}`
	for _, k := range workloadKinds {
		t.Run(k.kind, func(t *testing.T) {
			c := k.call(admissionv1.Create, k.object(theTemplate), "")
			patch, got := ask(t, hook, c).allowed(t, c, true)
			wantJSON(t, got, k.object(changed))
			prefix := strings.TrimPrefix(strings.ReplaceAll(k.path, ".", "/")+"/", "/") // empty for a Pod, which is its template
			var ops []struct{ Path, From string }
			if err := json.Unmarshal([]byte(patch), &ops); err != nil {
				t.Fatal(err)
			}
			for _, op := range ops {
				if !strings.HasPrefix(op.Path[1:], prefix) || op.From != "" && !strings.HasPrefix(op.From[1:], prefix) {
					t.Errorf("the patch leaves the template: %s", patch)
				}
			}
		})
	}
}

// TestMovedElementsOfATemplate checks that the field from of a move operation is a path in the object, not in the
// template.
func TestMovedElementsOfATemplate(t *testing.T) {
	hook := templates(func(req *webhook.Request[corev1.PodTemplateSpec]) error {
		slices.Reverse(req.Object.Spec.Containers)
		return nil
	})
	k := workloadKinds[4]
	c := k.call(admissionv1.Create, k.object(theTemplate), "")
	patch, got := ask(t, hook, c).allowed(t, c, true)
	contains(t, patch, `"op":"move"`)
	contains(t, got, `"containers":[{"name":"log","image":"log:1","new":5},{"name":"app","image":"app:1","new":4}]`)
}

func TestRequestOfAPodTemplate(t *testing.T) {
	yes := true
	for _, k := range workloadKinds {
		t.Run(k.kind, func(t *testing.T) {
			old := strings.ReplaceAll(theTemplate, "app:1", "app:0")
			var got struct {
				old, path, owner string
				kind             metav1.GroupVersionKind
			}
			hook := webhook.ValidatingPodTemplates(admissionregistrationv1.ValidatingWebhook{Name: "templates.example.com"},
				func(_ context.Context, req *webhook.Request[corev1.PodTemplateSpec]) error {
					old, err := req.OldObject()
					if err != nil {
						return err
					}
					got.old, got.path, got.kind = old.Spec.Containers[0].Image, req.FieldPath().Child("spec").String(), req.Kind
					if owner := req.Controller(); owner != nil {
						got.owner = owner.Kind
					}
					return webhook.DenyInvalid(field.ErrorList{field.Forbidden(req.FieldPath().Child("spec", "hostNetwork"), "no")})
				}, rollout)
			owned, err := json.Marshal([]metav1.OwnerReference{{Kind: "Other", Name: "o"}, {Kind: "Parent", Name: "p", Controller: &yes}})
			if err != nil {
				t.Fatal(err)
			}
			object := strings.Replace(k.object(theTemplate), `"metadata":{`, `"metadata":{"ownerReferences":`+string(owned)+",", 1)
			if k.path != "" && strings.Index(object, "ownerReferences") > strings.Index(object, `"template"`) {
				t.Fatal("the owner is not that of the object")
			}
			c := k.call(admissionv1.Update, object, k.object(old))
			status := ask(t, hook, c).denied(t, c, false)
			wantPath := strings.TrimPrefix(k.path+".spec", ".")
			if got.old != "app:0" || got.path != wantPath || got.owner != "Parent" || got.kind.Kind != split(k.kind)[2] {
				t.Errorf("got %+v", got)
			}
			if len(status.Details.Causes) != 1 || status.Details.Causes[0].Field != wantPath+".hostNetwork" {
				t.Errorf("got %+v", status.Details)
			}
		})
	}
}

// TestObjectsWithoutATemplate checks that an object without the template is not admitted, and that the handler is not
// called with an empty template.
func TestObjectsWithoutATemplate(t *testing.T) {
	hook := templates(func(*webhook.Request[corev1.PodTemplateSpec]) error {
		t.Error("the handler was called")
		return nil
	})
	cronJob, custom := workloadKinds[8], workloadKinds[9]
	for _, in := range []struct {
		reason string
		call   call
		err    string
	}{
		{"an absent template", custom.call(admissionv1.Create, `{"spec":{"canary":{}}}`, ""), "object has no spec.canary.template, which the hook reads"},
		{"a null template", custom.call(admissionv1.Create, `{"spec":{"canary":{"template":null}}}`, ""), "object has no spec.canary.template"},
		{"a null parent", custom.call(admissionv1.Create, `{"spec":null}`, ""), "object has no spec.canary.template"},
		{"a parent that is a list", custom.call(admissionv1.Create, `{"spec":[{"canary":{}}]}`, ""), "object has no spec.canary.template"},
		{"a parent that a later duplicate replaces", custom.call(admissionv1.Create, `{"spec":{"canary":{"template":{}}},"spec":{}}`, ""), "object has no spec.canary.template"},
		{"a built-in kind", cronJob.call(admissionv1.Create, `{"spec":{"jobTemplate":{"spec":{}}}}`, ""), "object has no spec.jobTemplate.spec.template"},
		{"a template of another type", custom.call(admissionv1.Create, `{"spec":{"canary":{"template":[1]}}}`, ""), "cannot decode object as v1.PodTemplateSpec: spec.canary.template: "},
		{"a field of another type", custom.call(admissionv1.Create, `{"spec":{"canary":{"template":{"spec":{"containers":7}}}}}`, ""),
			"cannot decode object as v1.PodTemplateSpec: spec.canary.template.spec.containers: "},
		{"a field of a Pod", workloadKinds[0].call(admissionv1.Create, `{"spec":{"containers":7}}`, ""), "cannot decode object as v1.PodTemplateSpec: spec.containers: "},
	} {
		row(t, in.reason, func(t *testing.T) { contains(t, ask(t, hook, in.call).failed(t).Message, in.err) })
	}
	t.Run("the old object", func(t *testing.T) {
		hook := templates(func(req *webhook.Request[corev1.PodTemplateSpec]) error { _, err := req.OldObject(); return err })
		c := custom.call(admissionv1.Update, custom.object(theTemplate), `{"spec":{}}`)
		contains(t, ask(t, hook, c).failed(t).Message, "oldObject has no spec.canary.template")
	})
}

func TestUnknownFieldsOfPodTemplates(t *testing.T) {
	for _, k := range []workloadKind{workloadKinds[0], workloadKinds[4]} {
		t.Run(k.kind, func(t *testing.T) {
			known := strings.NewReplacer(`"new":1,`, "", `,"new":2`, "", `"new":3,`, "", `,"new":4`, "", `,"new":5`, "").Replace(theTemplate)
			var listed []string
			hook := templates(func(req *webhook.Request[corev1.PodTemplateSpec]) error { listed = req.UnknownFields(); return nil })
			c := k.call(admissionv1.Create, strings.Replace(k.object(known), `"metadata"`, `"status":{},"metadata"`, 1), "")
			ask(t, hook.WithUnknownFields(webhook.DenyUnknownFields), c).allowed(t, c, true)
			if len(listed) > 0 {
				t.Errorf("got %q", listed)
			}
			c.object = strings.Replace(c.object, `"image":"log:1"`, `"image":"log:1","later":1`, 1)
			status := ask(t, hook.WithUnknownFields(webhook.DenyUnknownFields), c).denied(t, c, true)
			contains(t, status.Message, strings.TrimPrefix(k.path+".spec.containers[1].later", "."))
		})
	}
}

func TestRulesOfPodTemplates(t *testing.T) {
	o := webhook.ConfigurationOptions{Name: "templates", URL: "https://127.0.0.1:9443"}
	validating := webhook.ValidatingPodTemplates(admissionregistrationv1.ValidatingWebhook{Name: "templates.example.com"},
		func(context.Context, *webhook.Request[corev1.PodTemplateSpec]) error { return nil }, rollout)
	mutating := webhook.MutatingPodTemplates(admissionregistrationv1.MutatingWebhook{Name: "templates.example.com"},
		func(context.Context, *webhook.Request[corev1.PodTemplateSpec]) error { return nil }, rollout)
	m, v, err := webhook.Configurations(o, mutating, validating)
	if err != nil {
		t.Fatal(err)
	}
	shown := func(rules []admissionregistrationv1.RuleWithOperations) (all []string) {
		for _, r := range rules {
			all = append(all, fmt.Sprint(r.Operations, r.APIGroups, r.APIVersions, r.Resources))
		}
		return all
	}
	if got, want := shown(m.Webhooks[0].Rules), []string{
		"[CREATE] [] [v1] [pods]", "[CREATE UPDATE] [] [v1] [podtemplates]", "[CREATE UPDATE] [apps] [v1] [deployments statefulsets daemonsets]",
		"[CREATE] [batch] [v1] [jobs]", "[CREATE UPDATE] [batch] [v1] [cronjobs]", "[CREATE UPDATE] [example.com] [v2] [rollouts]",
	}; !slices.Equal(got, want) {
		t.Errorf("mutating\n got %q\nwant %q", got, want)
	}
	if got, want := shown(v.Webhooks[0].Rules), []string{
		"[CREATE] [] [v1] [pods]", "[UPDATE] [] [v1] [pods pods/ephemeralcontainers pods/resize]", "[CREATE UPDATE] [] [v1] [podtemplates replicationcontrollers]",
		"[CREATE UPDATE] [apps] [v1] [replicasets deployments statefulsets daemonsets]", "[CREATE UPDATE] [batch] [v1] [jobs cronjobs]", "[CREATE UPDATE] [example.com] [v2] [rollouts]",
	}; !slices.Equal(got, want) {
		t.Errorf("validating\n got %q\nwant %q", got, want)
	}
}

// TestUnchangedTemplates checks that the hook admits an update that leaves the template alone, without calling its
// handler. A hook that is newer than the object must neither start a rollout nor block the updates of a controller.
func TestUnchangedTemplates(t *testing.T) {
	k := workloadKinds[4]
	object := k.object(theTemplate)
	for reason, in := range map[string]struct {
		kind    workloadKind
		changed string
		called  bool
	}{
		"the same object":             {k, object, false},
		"other fields of the object":  {k, strings.Replace(object, `"before":[{"template":1}]`, `"before":[]`, 1), false},
		"another image":               {k, strings.Replace(object, "app:1", "app:2", 1), true},
		"another label":               {k, strings.Replace(object, `"app":"web"`, `"app":"api"`, 1), true},
		"a finalizer of a Pod":        {workloadKinds[0], strings.Replace(workloadKinds[0].object(theTemplate), `"metadata":{`, `"metadata":{"finalizers":["a/b"],`, 1), false},
		"an annotation of a Pod":      {workloadKinds[0], strings.Replace(workloadKinds[0].object(theTemplate), `"metadata":{`, `"metadata":{"annotations":{"a":"b"},`, 1), true},
		"an equal quantity in a spec": {k, strings.Replace(object, `"image":"app:1"`, `"image":"app:1","resources":{}`, 1), false},
	} {
		t.Run(reason, func(t *testing.T) {
			called := false
			reg := admissionregistrationv1.MutatingWebhook{Name: "templates.example.com", Rules: webhook.Rules(webhook.OnWrite("", "v1", "pods"), webhook.OnWrite("apps", "v1", "deployments"))}
			hook := webhook.MutatingPodTemplates(reg, func(context.Context, *webhook.Request[corev1.PodTemplateSpec]) error { called = true; return nil })
			c := in.kind.call(admissionv1.Update, in.changed, in.kind.object(theTemplate))
			if ask(t, hook, c).allowed(t, c, true); called != in.called {
				t.Errorf("got called %t", called)
			}
		})
	}
}

func TestRegistrationsOfPodTemplatesAreChecked(t *testing.T) {
	handle := func(context.Context, *webhook.Request[corev1.PodTemplateSpec]) error { return nil }
	for _, in := range []struct {
		reason string
		rules  []admissionregistrationv1.RuleWithOperations
		custom []webhook.Workload
		err    string // empty: none
	}{
		{reason: "rules for some of the kinds", rules: webhook.Rules(webhook.OnCreate("apps", "v1", "deployments"))},
		{reason: "a rule for a kind without a template", rules: webhook.Rules(webhook.OnCreate("", "v1", "services")),
			err: `rules[0].resources[0]: Invalid value: "services": the handlers take "pods", "podtemplates"`},
		{reason: "an empty workload", custom: []webhook.Workload{{}}, err: "workloads[0].kind.kind: Required value"},
		{reason: "an empty workload has four errors", custom: []webhook.Workload{{}}, err: "workloads[0].resource: Required value"},
		{reason: "a path that is a pointer", custom: []webhook.Workload{{Kind: rollout.Kind, Resource: "rollouts", Path: ".spec.template"}},
			err: `workloads[0].path: Invalid value: ".spec.template": must be field names with dots between them`},
		{reason: "a built-in kind", custom: []webhook.Workload{{Kind: gvk("apps/v1/Deployment"), Resource: "deployments", Path: "spec.template"}},
			err: "both get kind Deployment (apps/v1)"},
	} {
		row(t, in.reason, func(t *testing.T) {
			err := webhook.MutatingPodTemplates(admissionregistrationv1.MutatingWebhook{Name: "templates.example.com", Rules: in.rules}, handle, in.custom...).Check()
			switch {
			case in.err == "" && err != nil:
				t.Error(err)
			case in.err != "" && err == nil:
				t.Error("got no error")
			case in.err != "":
				contains(t, err.Error(), in.err)
			}
		})
	}
}
