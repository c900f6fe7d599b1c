// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admitkit/admitkit/pkg/chain"
)

// A slot is a webhook that an object enables by a label with the name of the slot. An annotation of
// the object selects its action, so one registration serves all cases.
type slot struct {
	name       string
	mutating   bool
	ignore     bool
	never      bool // has the reinvocationPolicy Never
	exact      bool
	v1beta1    bool
	namespaces map[string]string
	conditions []admissionregistrationv1.MatchCondition
	scope      admissionregistrationv1.ScopeType
	operations []admissionregistrationv1.OperationType
	unselected bool // has no objectSelector, because some requests have no labels to select by
	resources  []string
	versions   []string
}

var slots = []slot{
	{name: "m0", mutating: true},
	{name: "m1", mutating: true, ignore: true},
	{name: "m2", mutating: true, never: true},
	{name: "m3", mutating: true, v1beta1: true},
	{name: "m4", mutating: true, ignore: true, namespaces: map[string]string{"team": "special"}},
	{name: "m5", mutating: true, conditions: condition(`object != null && has(object.metadata.labels) && "m0" in object.metadata.labels`)},
	{name: "m6", mutating: true, ignore: true, conditions: condition(`object.metadata.labels.size == "large"`)},
	{name: "m7", mutating: true, conditions: condition(`request.operation != "UPDATE" || oldObject.metadata.annotations["asked"] == "x"`)},
	{name: "m8", mutating: true, scope: admissionregistrationv1.ClusterScope},
	{name: "m9", mutating: true, operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Update, admissionregistrationv1.Delete}},
	{name: "mc", mutating: true, resources: []string{"horizontalpodautoscalers"}, versions: []string{"v1"}},
	{name: "me", mutating: true, resources: []string{"widgets"}, versions: []string{"v1"}},
	{name: "mx", mutating: true, unselected: true, resources: []string{"pods/exec", "pods/attach"}},
	{name: "v0"},
	{name: "v1", ignore: true},
	{name: "v2", v1beta1: true, ignore: true},
	{name: "v3", namespaces: map[string]string{"team": "special"}},
	{name: "v4", conditions: condition(`request.userInfo.username == "jane"`)},
	{name: "v5", exact: true, versions: []string{"v1"}, scope: admissionregistrationv1.NamespacedScope},
	{name: "v6", conditions: condition(`authorizer.group("").resource("pods").check("get").allowed()`)},
	{name: "va", unselected: true},
	{name: "vx", unselected: true, resources: []string{"pods/exec", "pods/attach"}},
}

func condition(expression string) []admissionregistrationv1.MatchCondition {
	return []admissionregistrationv1.MatchCondition{{Name: "condition", Expression: expression}}
}

func (s slot) webhook() string { return s.name + ".diff.example.com" }

func (s slot) validating() admissionregistrationv1.ValidatingWebhook {
	h := admissionregistrationv1.ValidatingWebhook{
		Name: s.webhook(), SideEffects: new(admissionregistrationv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
		MatchConditions: s.conditions, FailurePolicy: new(admissionregistrationv1.Fail), MatchPolicy: new(admissionregistrationv1.Equivalent),
		ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: new("https://hooks.example.com/" + s.name)},
	}
	rule := admissionregistrationv1.RuleWithOperations{
		Operations: s.operations,
		Rule: admissionregistrationv1.Rule{
			APIGroups: []string{"", "apps", "autoscaling", "batch", "diff.example.com", "networking.k8s.io"}, APIVersions: s.versions, Resources: s.resources, Scope: new(admissionregistrationv1.AllScopes),
		},
	}
	if rule.Operations == nil {
		rule.Operations = []admissionregistrationv1.OperationType{admissionregistrationv1.OperationAll}
	}
	if rule.APIVersions == nil {
		rule.APIVersions = []string{"*"}
	}
	if rule.Resources == nil {
		rule.Resources = []string{"*"}
	}
	if s.scope != "" {
		rule.Scope = &s.scope
	}
	h.Rules = []admissionregistrationv1.RuleWithOperations{rule}
	if !s.unselected {
		h.ObjectSelector = &metav1.LabelSelector{MatchLabels: map[string]string{s.name: "on"}}
	}
	if s.namespaces != nil {
		h.NamespaceSelector = &metav1.LabelSelector{MatchLabels: s.namespaces}
	}
	if s.ignore {
		h.FailurePolicy = new(admissionregistrationv1.Ignore)
	}
	if s.exact {
		h.MatchPolicy = new(admissionregistrationv1.Exact)
	}
	if s.v1beta1 {
		h.AdmissionReviewVersions = []string{"v1beta1", "v1"}
	}
	return h
}

func (s slot) mutatingHook() admissionregistrationv1.MutatingWebhook {
	v := s.validating()
	h := admissionregistrationv1.MutatingWebhook{
		Name: v.Name, ClientConfig: v.ClientConfig, Rules: v.Rules, FailurePolicy: v.FailurePolicy, MatchPolicy: v.MatchPolicy,
		NamespaceSelector: v.NamespaceSelector, ObjectSelector: v.ObjectSelector, SideEffects: v.SideEffects,
		AdmissionReviewVersions: v.AdmissionReviewVersions, MatchConditions: v.MatchConditions,
		ReinvocationPolicy: new(admissionregistrationv1.IfNeededReinvocationPolicy),
	}
	if s.never {
		h.ReinvocationPolicy = new(admissionregistrationv1.NeverReinvocationPolicy)
	}
	return h
}

// webhooks distributes the slots over two configurations of each type. The configurations are not in the order of their
// names.
func webhooks() chain.Webhooks {
	w := chain.Webhooks{Handlers: map[string]http.Handler{}}
	for _, name := range []string{"diff-b", "diff-a"} {
		w.Mutating = append(w.Mutating, &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name}})
		w.Validating = append(w.Validating, &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	for i, s := range slots {
		w.Handlers[s.webhook()] = scripted(s.name)
		c := 1 - i%5/4 // every fifth slot is in diff-b
		if s.mutating {
			w.Mutating[c].Webhooks = append(w.Mutating[c].Webhooks, s.mutatingHook())
		} else {
			w.Validating[c].Webhooks = append(w.Validating[c].Webhooks, s.validating())
		}
	}
	return w
}

// A scripted is the handler of the slot with that name. It runs the action that the object selects for the slot.
type scripted string

func (s scripted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var review struct {
		metav1.TypeMeta `json:",inline"`
		Request         *admissionv1.AdmissionRequest `json:"request"`
	}
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	what := s.script(review.Request)
	if answer, ok := rawAnswers[what]; ok {
		answer(w, string(review.Request.UID))
		return
	}
	response := &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
	if do, ok := responses[what]; ok {
		do(string(s), review.Request, response)
	}
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(admissionv1.AdmissionReview{TypeMeta: review.TypeMeta, Response: response}); err != nil {
		panic(err)
	}
}

// script returns the action of the slot, from an annotation or from the container name of an exec.
func (s scripted) script(req *admissionv1.AdmissionRequest) string {
	raw := req.Object.Raw
	if len(raw) == 0 || string(raw) == "null" {
		raw = req.OldObject.Raw
	}
	var object struct {
		Metadata  metav1.ObjectMeta `json:"metadata"`
		Container string            `json:"container"`
	}
	if err := json.Unmarshal(raw, &object); err != nil {
		return ""
	}
	if req.Operation == admissionv1.Connect {
		what, ok := strings.CutPrefix(object.Container, string(s)+"-")
		if !ok {
			return ""
		}
		return what
	}
	return object.Metadata.Annotations["script/"+string(s)]
}

// rawAnswers are responses that are not valid AdmissionReviews.
var rawAnswers = map[string]func(w http.ResponseWriter, uid string){
	"http500": func(w http.ResponseWriter, _ string) { http.Error(w, "out of order", http.StatusInternalServerError) },
	"http404": func(w http.ResponseWriter, _ string) { http.Error(w, "not here", http.StatusNotFound) },
	"http204": func(w http.ResponseWriter, _ string) { w.WriteHeader(http.StatusNoContent) },
	"empty":   func(http.ResponseWriter, string) {},
	"garbage": func(w http.ResponseWriter, _ string) { fmt.Fprint(w, "garbage") },
	"panic":   func(http.ResponseWriter, string) { panic(http.ErrAbortHandler) },
	"noresponse": func(w http.ResponseWriter, _ string) {
		fmt.Fprint(w, `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}`)
	},
	"otherkind": func(w http.ResponseWriter, _ string) { fmt.Fprint(w, `{"apiVersion":"v1","kind":"Pod"}`) },
	"status":    func(w http.ResponseWriter, _ string) { fmt.Fprint(w, `{"apiVersion":"v1","kind":"Status","code":403}`) },
	"otheruid": func(w http.ResponseWriter, _ string) {
		fmt.Fprint(w, `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":"other","allowed":true}}`)
	},
	"unversioned": func(w http.ResponseWriter, uid string) { fmt.Fprintf(w, `{"response":{"uid":%q,"allowed":true}}`, uid) },
	"trailing": func(w http.ResponseWriter, uid string) {
		fmt.Fprintf(w, `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":%q,"allowed":true}} x`, uid)
	},
	"capital": func(w http.ResponseWriter, uid string) {
		fmt.Fprintf(w, `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":%q,"Allowed":true}}`, uid)
	},
}
