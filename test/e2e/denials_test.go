// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/rest"

	"github.com/admitkit/admitkit/pkg/webhook"
)

// A denial is an error that a handler returns, and the response that the user receives.
type denial struct {
	name string // part of the spec's text
	err  error
	// want is the status that the API client gets, without the prefix of its message.
	want metav1.Status
	// kubectl is the output of kubectl. It is checked unless empty.
	kubectl string
}

var leases = schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}

var invalidData = field.ErrorList{
	field.Invalid(field.NewPath("data").Key("replicas"), "three", "must be a number"),
	field.Required(field.NewPath("data").Key("owner"), "who is asked?"),
}

var denials = []denial{
	{
		name:    "Deny is 403 Forbidden",
		err:     webhook.Deny("replicas is not a number"),
		want:    metav1.Status{Code: 403, Reason: "Forbidden", Message: "replicas is not a number"},
		kubectl: `Error from server (Forbidden): error when creating "STDIN": admission webhook "gate.example.com" denied the request: replicas is not a number`,
	},
	{
		name: "the text around a wrapped denial is part of the message",
		err:  fmt.Errorf("policy %s: %w", "numbers", webhook.Denyf("%s is not a number", "replicas")),
		want: metav1.Status{Code: 403, Reason: "Forbidden", Message: "policy numbers: replicas is not a number"},
	},
	{
		name: "DenyInvalid is 422 Invalid with a cause for each field",
		err:  webhook.DenyInvalid(invalidData),
		want: metav1.Status{
			Code: 422, Reason: "Invalid",
			Message: `ConfigMap "denied" is invalid: [data[replicas]: Invalid value: "three": must be a number, data[owner]: Required value: who is asked?]`,
			Details: &metav1.StatusDetails{Name: "denied", Kind: "ConfigMap", Causes: []metav1.StatusCause{
				{Type: "FieldValueInvalid", Field: "data[replicas]", Message: `Invalid value: "three": must be a number`},
				{Type: "FieldValueRequired", Field: "data[owner]", Message: "Required value: who is asked?"},
			}},
		},
		kubectl: "The ConfigMap \"denied\" is invalid: \n* data[replicas]: Invalid value: \"three\": must be a number\n* data[owner]: Required value: who is asked?",
	},
	{
		name: "a plain field error is 422 Invalid",
		err:  invalidData[0],
		want: metav1.Status{
			Code: 422, Reason: "Invalid",
			Message: `ConfigMap "denied" is invalid: data[replicas]: Invalid value: "three": must be a number`,
			Details: &metav1.StatusDetails{Name: "denied", Kind: "ConfigMap", Causes: []metav1.StatusCause{
				{Type: "FieldValueInvalid", Field: "data[replicas]", Message: `Invalid value: "three": must be a number`},
			}},
		},
	},
	{
		name: "NewConflict is 409 Conflict with its details",
		err:  apierrors.NewConflict(leases, "red", errors.New("held by another")),
		want: metav1.Status{
			Code: 409, Reason: "Conflict",
			Message: `Operation cannot be fulfilled on leases.coordination.k8s.io "red": held by another`,
			Details: &metav1.StatusDetails{Name: "red", Group: "coordination.k8s.io", Kind: "leases"},
		},
		kubectl: `Error from server (Conflict): error when creating "STDIN": admission webhook "gate.example.com" denied the request: Operation cannot be fulfilled on leases.coordination.k8s.io "red": held by another`,
	},
	{
		name: "NewTooManyRequests is 429 with retryAfterSeconds",
		err:  apierrors.NewTooManyRequests("one at a time", 7),
		want: metav1.Status{
			Code: 429, Reason: "TooManyRequests", Message: "one at a time", Details: &metav1.StatusDetails{RetryAfterSeconds: 7},
		},
	},
	{
		name:    "DenyStatus may deny with 503",
		err:     webhook.DenyStatus(metav1.Status{Code: 503, Reason: "ServiceUnavailable", Message: "closed for the night"}),
		want:    metav1.Status{Code: 503, Reason: "ServiceUnavailable", Message: "closed for the night"},
		kubectl: `Error from server (ServiceUnavailable): error when creating "STDIN": admission webhook "gate.example.com" denied the request: closed for the night`,
	},
	{
		name: "DenyStatus keeps its own code, reason and causes",
		err: webhook.DenyStatus(metav1.Status{Code: 451, Reason: "Embargo", Message: "not to be shipped", Details: &metav1.StatusDetails{
			UID: "7", Causes: []metav1.StatusCause{{Type: "Embargo", Field: "data", Message: "article 5"}},
		}}),
		want: metav1.Status{Code: 451, Reason: "Embargo", Message: "not to be shipped", Details: &metav1.StatusDetails{
			UID: "7", Causes: []metav1.StatusCause{{Type: "Embargo", Field: "data", Message: "article 5"}},
		}},
		kubectl: `Error from server (Embargo): error when creating "STDIN": admission webhook "gate.example.com" denied the request: not to be shipped`,
	},
	{
		name: "DenyStatus without anything is 403 Forbidden",
		err:  webhook.DenyStatus(metav1.Status{}),
		want: metav1.Status{Code: 403, Reason: "Forbidden", Message: "Forbidden"},
	},
	{
		name: "DenyStatus with a code that would crash the API server's handler is 403 Forbidden",
		err:  webhook.DenyStatus(metav1.Status{Code: 1000, Message: "no"}),
		want: metav1.Status{Code: 403, Reason: "Forbidden", Message: "no"},
	},
}

const deniedPrefix = `admission webhook "gate.example.com" denied the request: `

// installGate registers a hook that returns err for the creation of every ConfigMap. The failurePolicy of the hook is
// Ignore, which must not affect denials.
func installGate(ctx context.Context, kind, version, namespace string, err error) {
	GinkgoHelper()
	install(ctx, hookOf(kind, admissionregistrationv1.ValidatingWebhook{
		Name:                    "gate.example.com",
		NamespaceSelector:       only(namespace),
		AdmissionReviewVersions: []string{version},
		Rules:                   webhook.Rules(webhook.OnCreate("", "v1", "configmaps")),
		FailurePolicy:           new(admissionregistrationv1.Ignore),
	}, func(context.Context, *webhook.Request[corev1.ConfigMap]) error { return err }))
}

var _ = Describe("denials", func() {
	for _, kind := range hookKinds {
		for _, version := range reviewVersions {
			Context("of a "+kind+" hook called with "+version+" reviews", func() {
				for _, d := range denials {
					It("reach the API client: "+d.name, func(ctx context.Context) {
						ns := newNamespace(ctx)
						installGate(ctx, kind, version, ns, d.err)
						// Without retries: client-go would wait and try again on a Retry-After.
						err := clients.CoreV1().RESTClient().Post().MaxRetries(0).
							Namespace(ns).Resource("configmaps").Body(configMap(ns, "denied")).Do(ctx).Error()
						var api apierrors.APIStatus
						Expect(errors.As(err, &api)).To(BeTrue(), "%v", err)
						want := d.want
						want.Status, want.Message = metav1.StatusFailure, deniedPrefix+want.Message
						got := api.Status()
						got.TypeMeta = metav1.TypeMeta{}
						Expect(got).To(Equal(want))
						_, err = clients.CoreV1().ConfigMaps(ns).Get(ctx, "denied", metav1.GetOptions{})
						Expect(apierrors.IsNotFound(err)).To(BeTrue(), "%v", err)
					})
				}

				It("set the Retry-After header for the API client", func(ctx context.Context) {
					ns := newNamespace(ctx)
					installGate(ctx, kind, version, ns, apierrors.NewTooManyRequests("one at a time", 7))
					client, err := rest.HTTPClientFor(config)
					Expect(err).NotTo(HaveOccurred())
					url := clients.CoreV1().RESTClient().Post().Namespace(ns).Resource("configmaps").URL().String()
					request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(manifest("v1", "ConfigMap", configMap(ns, "denied"))))
					Expect(err).NotTo(HaveOccurred())
					request.Header.Set("Content-Type", "application/json")
					response, err := client.Do(request)
					Expect(err).NotTo(HaveOccurred())
					DeferCleanup(response.Body.Close)
					Expect(response.StatusCode).To(Equal(http.StatusTooManyRequests))
					Expect(response.Header.Get("Retry-After")).To(Equal("7"))
					var status metav1.Status
					Expect(json.NewDecoder(response.Body).Decode(&status)).To(Succeed())
					Expect(status.Message).To(Equal(deniedPrefix + "one at a time"))
				})
			})
		}
	}

	for _, d := range denials {
		if d.kubectl != "" {
			It("are printed by kubectl: "+d.name, func(ctx context.Context) {
				ns := newNamespace(ctx)
				installGate(ctx, validating, "v1", ns, d.err)
				stdout, stderr, err := kubectl(ctx, manifest("v1", "ConfigMap", configMap(ns, "denied")), "create", "-f", "-")
				Expect(err).To(HaveOccurred())
				Expect(stdout).To(BeEmpty())
				Expect(stderr).To(Equal(d.kubectl + "\n"))
			})
		}
	}

	It("by a mutating hook prevent the calls of later hooks", func(ctx context.Context) {
		ns, seen := newNamespace(ctx), &calls{}
		hook := func(kind, name string, err error) *webhook.Hook {
			return hookOf(kind, admissionregistrationv1.ValidatingWebhook{
				Name: name + ".example.com", NamespaceSelector: only(ns), Rules: webhook.Rules(webhook.OnCreate("", "v1", "configmaps")),
			}, func(_ context.Context, req *webhook.Request[corev1.ConfigMap]) error {
				saw(seen, name, req)
				return err
			})
		}
		install(ctx, hook(mutating, "first", nil), hook(mutating, "second", webhook.Deny("no")), hook(mutating, "third", nil), hook(validating, "fourth", nil))
		_, err := createConfigMap(ctx, ns, "denied")
		Expect(err).To(MatchError(`admission webhook "second.example.com" denied the request: no`))
		Expect(seen.names()).To(Equal("first second"))
	})
})
