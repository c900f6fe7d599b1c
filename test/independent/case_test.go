// SPDX-License-Identifier: Apache-2.0

// Package independent has mutating webhooks by three authors. The authors had not read the code of the idempotence harness. 58 are broken and 70
// are correct. A name such as Z01b1 has the author (Z is the first, F the second, T the third), the family, b for broken or
// c for correct, and a number. The webhooks use encoding/json, Go types or controller-runtime, as platform teams do. A
// proof for each one shows, without the harness, whether it is broken. TestHarness runs the harness on all of them.
package independent

import (
	"net/http"

	"github.com/go-logr/logr"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

func init() { logf.SetLogger(logr.Discard()) }

// A hookCase is one webhook of the corpus.
type hookCase struct {
	Name    string // Z03b2-...: family 3, broken, number 2
	Summary string
	Why     string
	Webhook admissionregistrationv1.MutatingWebhook
	New     func() http.Handler
	Samples []string // YAML
	CRDs    []string // YAML
	// Proof returns a description of the fault, or "" if there is none.
	Proof func(p *prover) string
}

func (c hookCase) broken() bool { return c.Name[3] == 'b' }

var cases []hookCase

func add(c hookCase) bool { cases = append(cases, c); return true }

type op = admissionregistrationv1.OperationType

const (
	create = admissionregistrationv1.Create
	update = admissionregistrationv1.Update
)

func register(name, group, version, resource string, ops ...op) admissionregistrationv1.MutatingWebhook {
	fail, none, again := admissionregistrationv1.Fail, admissionregistrationv1.SideEffectClassNone, admissionregistrationv1.IfNeededReinvocationPolicy
	path := "/mutate"
	return admissionregistrationv1.MutatingWebhook{
		Name:                    name,
		ClientConfig:            admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{Namespace: "platform-system", Name: "webhooks", Path: &path}},
		AdmissionReviewVersions: []string{"v1"},
		FailurePolicy:           &fail,
		SideEffects:             &none,
		ReinvocationPolicy:      &again,
		Rules: []admissionregistrationv1.RuleWithOperations{{
			Operations: ops,
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{group}, APIVersions: []string{version}, Resources: []string{resource}},
		}},
	}
}

func onlyLabelled(w admissionregistrationv1.MutatingWebhook, key, value string) admissionregistrationv1.MutatingWebhook {
	w.ObjectSelector = &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
	return w
}

func notInSystem(w admissionregistrationv1.MutatingWebhook) admissionregistrationv1.MutatingWebhook {
	w.NamespaceSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
		Key: "kubernetes.io/metadata.name", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"kube-system"},
	}}}
	return w
}
