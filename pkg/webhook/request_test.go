// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/admitkit/admitkit/pkg/webhook"
)

// mutateWith sends c to a mutating hook for T with the handler f. It returns the patch and the patched object.
func mutateWith[T any](t *testing.T, c call, f func(req *webhook.Request[T]) error) (patch, object string) {
	t.Helper()
	hook := webhook.Mutating(admissionregistrationv1.MutatingWebhook{Name: "any.example.com", Rules: everything},
		func(_ context.Context, req *webhook.Request[T]) error { return f(req) })
	return ask(t, hook, c).allowed(t, c, true)
}

// validateWith sends c to a validating hook for T with the handler f, and returns the answer.
func validateWith[T any](t *testing.T, c call, f func(req *webhook.Request[T]) error) answer {
	t.Helper()
	hook := webhook.Validating(admissionregistrationv1.ValidatingWebhook{Name: "any.example.com", Rules: everything},
		func(_ context.Context, req *webhook.Request[T]) error { return f(req) })
	return ask(t, hook, c)
}

// A Widget is the Go type of a custom resource. The path of its package has no version.
type Widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              struct {
		Size  int64    `json:"size,omitempty"`
		Parts []string `json:"parts,omitempty"`
	} `json:"spec"`
}

func (w *Widget) DeepCopyObject() runtime.Object { c := *w; return &c }

const theWidget = `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w","new":1},"spec":{"size":3,"new":[2],"parts":["a"]},"status":{"phase":"Ready"}}`

// podImages is a projection of the images of a Pod.
type podImages struct {
	Spec struct {
		Containers []struct {
			Name  string `json:"name"`
			Image string `json:"image,omitempty"`
		} `json:"containers"`
	} `json:"spec"`
}

func TestEveryKindOfTypeIsDecodedAndPatchedAlike(t *testing.T) {
	t.Run("a built-in type", func(t *testing.T) {
		patch, _ := mutateWith(t, call{object: `{"metadata":{"labels":{"a":"1"}},"spec":{"containers":[{"name":"app","new":1}],"new":2}}`},
			func(req *webhook.Request[corev1.Pod]) error {
				req.Object.Spec.Containers[0].Image = "app:2"
				return nil
			})
		want(t, patch, `[{"op":"add","path":"/spec/containers/0/image","value":"app:2"}]`)
	})
	t.Run("the struct of a custom resource", func(t *testing.T) {
		patch, _ := mutateWith(t, call{kind: "example.com/v1/Widget", resource: "example.com/v1/widgets", object: theWidget},
			func(req *webhook.Request[Widget]) error {
				req.Object.Spec.Size++
				req.Object.Spec.Parts = append(req.Object.Spec.Parts, "b")
				return nil
			})
		want(t, patch, `[{"op":"replace","path":"/spec/size","value":4},{"op":"add","path":"/spec/parts/1","value":"b"}]`)
	})
	t.Run("unstructured", func(t *testing.T) {
		patch, _ := mutateWith(t, call{kind: "example.com/v1/Widget", resource: "example.com/v1/widgets", object: theWidget},
			func(req *webhook.Request[unstructured.Unstructured]) error {
				if size, found, err := unstructured.NestedInt64(req.Object.Object, "spec", "size"); size != 3 || !found || err != nil {
					return fmt.Errorf("size %d, found %t, %w", size, found, err)
				}
				return unstructured.SetNestedField(req.Object.Object, "x", "spec", "color")
			})
		want(t, patch, `[{"op":"add","path":"/spec/color","value":"x"}]`)
	})
	t.Run("a projection", func(t *testing.T) {
		object := `{"metadata":{"name":"web"},"spec":{"containers":[{"name":"a","image":"x:1","env":[{"name":"A"}]},{"name":"b","tty":true}],"hostPID":true}}`
		patch, patched := mutateWith(t, call{object: object}, func(req *webhook.Request[podImages]) error {
			req.Object.Spec.Containers[1].Image = "y:1"
			req.Object.Spec.Containers[0].Image = "x:2"
			return nil
		})
		want(t, patch, `[{"op":"replace","path":"/spec/containers/0/image","value":"x:2"},{"op":"add","path":"/spec/containers/1/image","value":"y:1"}]`)
		wantJSON(t, patched, strings.NewReplacer(`"x:1"`, `"x:2"`, `"tty":true`, `"tty":true,"image":"y:1"`).Replace(object))
	})
}

func want(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
}

// TestObjectsOfSubresourcesAndOperations calls hooks with objects that are not of the resource's own type.
func TestObjectsOfSubresourcesAndOperations(t *testing.T) {
	t.Run("scale", func(t *testing.T) {
		c := call{operation: admissionv1.Update, kind: "autoscaling/v1/Scale", resource: "apps/v1/deployments", sub: "scale",
			object: `{"kind":"Scale","spec":{"replicas":100}}`, oldObject: `{"kind":"Scale","spec":{"replicas":3}}`}
		patch, _ := mutateWith(t, c, func(req *webhook.Request[autoscalingv1.Scale]) error {
			old, err := req.OldObject()
			req.Object.Spec.Replicas = old.Spec.Replicas + 1
			return err
		})
		want(t, patch, `[{"op":"replace","path":"/spec/replicas","value":4}]`)
	})
	t.Run("binding", func(t *testing.T) {
		c := call{kind: "/v1/Binding", sub: "binding", object: `{"kind":"Binding","metadata":{"name":"web"},"target":{"kind":"Node","name":"n1"}}`}
		a := validateWith(t, c, func(req *webhook.Request[corev1.Binding]) error {
			return webhook.Deny("not on " + req.Object.Target.Name)
		})
		want(t, a.denied(t, c, false).Message, "not on n1")
	})
	t.Run("eviction", func(t *testing.T) {
		c := call{kind: "policy/v1/Eviction", sub: "eviction", object: `{"kind":"Eviction","metadata":{"name":"web"},"deleteOptions":{"gracePeriodSeconds":5}}`}
		patch, _ := mutateWith(t, c, func(req *webhook.Request[policyv1.Eviction]) error {
			*req.Object.DeleteOptions.GracePeriodSeconds = 30
			return nil
		})
		want(t, patch, `[{"op":"replace","path":"/deleteOptions/gracePeriodSeconds","value":30}]`)
	})
	t.Run("token request", func(t *testing.T) {
		c := call{kind: "authentication.k8s.io/v1/TokenRequest", resource: "/v1/serviceaccounts", sub: "token", object: `{"spec":{"audiences":["a"],"expirationSeconds":1}}`}
		patch, _ := mutateWith(t, c, func(req *webhook.Request[authenticationv1.TokenRequest]) error {
			*req.Object.Spec.ExpirationSeconds = 600
			return nil
		})
		want(t, patch, `[{"op":"replace","path":"/spec/expirationSeconds","value":600}]`)
	})
	t.Run("exec", func(t *testing.T) {
		c := call{operation: admissionv1.Connect, kind: "/v1/PodExecOptions", sub: "exec", object: `{"kind":"PodExecOptions","stdin":true,"command":["sh"]}`}
		a := validateWith(t, c, func(req *webhook.Request[corev1.PodExecOptions]) error {
			old, err := req.OldObject()
			if err != nil || old != nil {
				return fmt.Errorf("old object %v, %w", old, err)
			}
			return webhook.Denyf("no %s with stdin=%t", req.Object.Command, req.Object.Stdin)
		})
		want(t, a.denied(t, c, false).Message, "no [sh] with stdin=true")
	})
	t.Run("delete", func(t *testing.T) {
		c := call{operation: admissionv1.Delete, oldObject: thePod, options: `{"kind":"DeleteOptions","gracePeriodSeconds":7}`}
		a := validateWith(t, c, func(req *webhook.Request[corev1.Pod]) error {
			var options metav1.DeleteOptions
			old, err := req.OldObject()
			if err := errors.Join(err, req.DecodeOptions(&options)); err != nil {
				return err
			}
			return webhook.Denyf("%v %s %d", req.Object == nil, old.Name, *options.GracePeriodSeconds)
		})
		want(t, a.denied(t, c, false).Message, "true web 7")
	})
}

func TestUpdateAndDeleteNeedAnOldObject(t *testing.T) {
	for _, c := range []call{{operation: admissionv1.Delete}, {operation: admissionv1.Update, object: thePod}} {
		a := validateWith(t, c, func(req *webhook.Request[corev1.Pod]) error { _, err := req.OldObject(); return err })
		want(t, a.failed(t).Message, fmt.Sprintf("the request is a %s without an old object", c.operation))
	}
}

func TestRequestCreatedByATest(t *testing.T) {
	req := &webhook.Request[corev1.Pod]{Object: &corev1.Pod{}}
	req.UID = "mine"
	req.Warnf("%d", 1)
	old, err := req.OldObject()
	if err = errors.Join(err, req.Audit("a", "b"), req.DecodeOptions(&metav1.CreateOptions{})); err != nil || old != nil {
		t.Errorf("old object %v, error %v", old, err)
	}
	if got := req.AdmissionRequest(); got.UID != "mine" || req.RawObject() != nil || req.UnknownFields() != nil {
		t.Errorf("got %v, %s, %v", got, req.RawObject(), req.UnknownFields())
	}
}

func TestOldObjectIsDecodedOnFirstUse(t *testing.T) {
	c := call{operation: admissionv1.Update, object: thePod, oldObject: `{"spec":{"containers":"none"}}`}
	validateWith(t, c, func(*webhook.Request[corev1.Pod]) error { return nil }).allowed(t, c, false)
	a := validateWith(t, c, func(req *webhook.Request[corev1.Pod]) error { _, err := req.OldObject(); return err })
	status := a.failed(t)
	want(t, status.Message, "cannot decode oldObject as v1.Pod: spec.containers: want array, got string")
	if status.Code != 400 || status.Details.Causes[0].Field != "spec.containers" {
		t.Errorf("got %+v", status)
	}
	c.oldObject = thePod
	validateWith(t, c, func(req *webhook.Request[corev1.Pod]) error {
		first, err := req.OldObject()
		second, _ := req.OldObject()
		if first != second || first == nil || first == req.Object {
			t.Error("the old object was decoded twice, or is the new one")
		}
		return err
	}).allowed(t, c, false)
}

func TestDecodeOptions(t *testing.T) {
	for reason, c := range map[string]call{
		"a create":          {options: `{"kind":"CreateOptions","apiVersion":"meta.k8s.io/v1","fieldManager":"kubectl","dryRun":["All"]}`},
		"an update":         {operation: admissionv1.Update, object: thePod, options: `{"kind":"UpdateOptions","fieldManager":"kubectl","dryRun":["All"]}`},
		"no options at all": {operation: admissionv1.Update, object: thePod},
	} {
		row(t, reason, func(t *testing.T) {
			validateWith(t, c, func(req *webhook.Request[unstructured.Unstructured]) error {
				options := metav1.CreateOptions{FieldManager: "untouched"}
				wanted := options
				if c.options != "" {
					wanted = metav1.CreateOptions{FieldManager: "kubectl", DryRun: []string{"All"}}
				}
				err := req.DecodeOptions(&options)
				if options.TypeMeta = (metav1.TypeMeta{}); !reflect.DeepEqual(options, wanted) {
					t.Errorf("got %+v, want %+v", options, wanted)
				}
				return err
			}).allowed(t, c, false)
		})
	}
	connect := call{operation: admissionv1.Connect, object: `{}`}
	validateWith(t, connect, func(req *webhook.Request[unstructured.Unstructured]) error {
		options := metav1.CreateOptions{FieldManager: "untouched"}
		err := req.DecodeOptions(&options)
		want(t, fmt.Sprint(err), "a CONNECT request has no separate options: the API server sends them as the object, so read Object")
		want(t, options.FieldManager, "untouched")
		return nil
	}).allowed(t, connect, false)
	bad := call{options: `{"gracePeriodSeconds":"long"}`}
	a := validateWith(t, bad, func(req *webhook.Request[corev1.Pod]) error { return req.DecodeOptions(&metav1.DeleteOptions{}) })
	want(t, a.failed(t).Message, "cannot decode options as v1.DeleteOptions: gracePeriodSeconds: want int64, got string")
}

func TestObjectOrOld(t *testing.T) {
	const old, bad = `{"metadata":{"name":"old"}}`, `{"spec":{"containers":"none"}}`
	for _, in := range []struct {
		c    call
		want string
	}{
		{call{object: thePod}, "web"},
		{call{operation: admissionv1.Update, object: thePod, oldObject: old}, "web"},
		{call{operation: admissionv1.Delete, oldObject: old}, "old"},
		{call{operation: admissionv1.Delete}, "the request is a DELETE without an old object"},
		{call{operation: admissionv1.Delete, oldObject: bad}, "cannot decode oldObject as v1.Pod: spec.containers: want array, got string"},
		{call{operation: admissionv1.Connect}, "the request is a CONNECT without an object"},
	} {
		validateWith(t, in.c, func(req *webhook.Request[corev1.Pod]) error {
			pod, err := req.ObjectOrOld()
			if err != nil {
				want(t, err.Error(), in.want)
				return nil
			}
			want(t, pod.Name, in.want)
			return nil
		}).allowed(t, in.c, false)
	}
}

func TestTimeoutIsTheParameterOfTheCall(t *testing.T) {
	for query, wanted := range map[string]time.Duration{
		"": 0, "?timeout=7s": 7 * time.Second, "?a=b&timeout=1s": time.Second, "?timeout=45s": 45 * time.Second,
		"?timeout=5": 0, "?timeout=-5s": 0, "?timeout=0s": 0,
	} {
		hook := validating(func(_ context.Context, req *webhook.Request[corev1.Pod]) error {
			got, sent := req.Timeout()
			return webhook.Denyf("%s %t", got, sent)
		})
		a := post(t, hook, query, "application/json", bytes.NewReader(call{}.body()))
		want(t, a.denied(t, call{}, false).Message, fmt.Sprintf("%s %t", wanted, wanted > 0))
	}
}

func TestUnknownFields(t *testing.T) {
	const object = `{"new":1,"metadata":{"name":"x","labels":{"any":"y"}},"spec":{"containers":[{"name":"a"},{"name":"b","new":{"deep":1},"image":"i"}]}}`
	ask := func(f func() []string, wanted ...string) {
		t.Helper()
		if got := f(); !reflect.DeepEqual(got, wanted) {
			t.Errorf("got %q, want %q", got, wanted)
		}
	}
	c := call{object: object}
	validateWith(t, c, func(req *webhook.Request[corev1.Pod]) error {
		ask(req.UnknownFields, "new", "spec.containers[1].new")
		return nil
	}).allowed(t, c, false)
	validateWith(t, c, func(req *webhook.Request[podImages]) error {
		ask(req.UnknownFields, "new", "metadata", "spec.containers[1].new")
		return nil
	}).allowed(t, c, false)
	validateWith(t, c, func(req *webhook.Request[unstructured.Unstructured]) error { ask(req.UnknownFields); return nil }).allowed(t, c, false)
	del := call{operation: admissionv1.Delete}
	validateWith(t, del, func(req *webhook.Request[corev1.Pod]) error { ask(req.UnknownFields); return nil }).allowed(t, del, false)
	var fields strings.Builder
	for i := range 500 {
		fmt.Fprintf(&fields, `"new%d":1,`, i)
	}
	many := call{object: `{` + fields.String() + `"new":1}`}
	validateWith(t, many, func(req *webhook.Request[corev1.Pod]) error {
		if n := len(req.UnknownFields()); n != 100 {
			t.Errorf("%d fields, want 100 of 501", n)
		}
		return nil
	}).allowed(t, many, false)
}

func TestSideEffects(t *testing.T) {
	broken := errors.New("the queue is full")
	for _, in := range []struct {
		reason   string
		declared admissionregistrationv1.SideEffectClass
		dryRun   bool
		result   error
		runs     bool
		message  string // of the failure
	}{
		{reason: "declared, for real", declared: "NoneOnDryRun", runs: true},
		{reason: "declared, a dry run", declared: "NoneOnDryRun", dryRun: true},
		{reason: "declared, for real, broken", declared: "NoneOnDryRun", result: broken, runs: true, message: "the queue is full"},
		{reason: "declared, a dry run, broken", declared: "NoneOnDryRun", dryRun: true, result: broken},
		{reason: "not declared", declared: "None", message: undeclared},
		{reason: "not declared, a dry run fails too", declared: "None", dryRun: true, message: undeclared},
		{reason: "None is the default", message: undeclared},
	} {
		row(t, in.reason, func(t *testing.T) {
			reg := admissionregistrationv1.ValidatingWebhook{Name: "any.example.com", Rules: everything}
			if in.declared != "" {
				reg.SideEffects = &in.declared
			}
			ran := false
			hook := webhook.Validating(reg, func(_ context.Context, req *webhook.Request[corev1.Pod]) error {
				return req.SideEffect(func() error { ran = true; return in.result })
			})
			c := call{more: fmt.Sprintf(`"dryRun":%t`, in.dryRun)}
			a := ask(t, hook, c)
			if ran != in.runs {
				t.Errorf("ran: %t", ran)
			}
			if in.message == "" {
				a.allowed(t, c, false)
			} else {
				want(t, a.failed(t).Message, in.message)
			}
		})
	}
}

const undeclared = "the hook has a side effect but its registration says sideEffects: None; set it to NoneOnDryRun"

// TestAdmissionRequestIsTheWholeRequest compares the result of AdmissionRequest with the request that encoding/json
// decodes from the same body. It also checks that the documents are copies.
func TestAdmissionRequestIsTheWholeRequest(t *testing.T) {
	c := call{operation: admissionv1.Update, uid: "u-9", kind: "apps/v1/Deployment", resource: "apps/v1/deployments", sub: "status", name: "n", namespace: "s",
		object: `{"metadata":{"name":"n"}}`, oldObject: `{"metadata":{}}`, options: `{"kind":"UpdateOptions"}`,
		more: `"requestKind":{"group":"extensions","version":"v1beta1","kind":"Deployment"},"requestResource":{"group":"extensions","version":"v1beta1","resource":"deployments"},` +
			`"requestSubResource":"status","dryRun":true,"userInfo":{"username":"ada","uid":"7","groups":["a","b"],"extra":{"k":["v","w"]}}`}
	var wanted admissionv1.AdmissionReview
	if err := json.Unmarshal(c.body(), &wanted); err != nil {
		t.Fatal(err)
	}
	validateWith(t, c, func(req *webhook.Request[appsv1.Deployment]) error {
		got := req.AdmissionRequest()
		if !reflect.DeepEqual(got, wanted.Request) {
			t.Errorf("\n got %+v\nwant %+v", got, wanted.Request)
		}
		want(t, string(req.RawObject())+string(req.RawOldObject()), c.object+c.oldObject)
		got.Object.Raw[0], req.RawObject()[0], req.RawOldObject()[0] = 'x', 'x', 'x' // copies, so nothing else changes
		if again := req.AdmissionRequest(); !reflect.DeepEqual(again, wanted.Request) || req.UID != types.UID("u-9") {
			t.Error("a copy is not a copy")
		}
		return nil
	}).allowed(t, c, false)
}
