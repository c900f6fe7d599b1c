// SPDX-License-Identifier: Apache-2.0

package session

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/edits"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/objects"
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// A Webhook is a registration, and the handler or the URLs that serve it.
type Webhook struct {
	admissionregistrationv1.MutatingWebhook
	InProcess  bool
	NewHandler func() http.Handler // of a webhook in this process
	Client     *http.Client        // of a webhook behind URLs
	URLs       []string

	// Replicas are the instances behind the URLs, which must agree.
	Replicas []Caller
	selector labels.Selector // of objects
	matches  conditions
}

// Prepare returns a copy of the webhook. Calls of the copy record their failures in connection. Prepare returns an
// error if the registration or the server is unusable.
func (w *Webhook) Prepare(connection *Connection) (*Webhook, error) {
	out := *w
	out.Replicas = nil
	for _, address := range w.URLs {
		out.Replicas = append(out.Replicas, &urlCaller{client: w.Client, url: address, connection: connection})
	}
	var errs []error
	var err error
	if out.selector, err = objectSelector(w.ObjectSelector); err != nil {
		errs = append(errs, fmt.Errorf("webhook %q: objectSelector: %w", w.Name, err))
	}
	out.matches = out.compile()
	if w.Name == "" {
		errs = append(errs, errors.New("the registration of a webhook has no name"))
	}
	if len(w.Rules) == 0 {
		errs = append(errs, fmt.Errorf("webhook %q: the registration has no rules, so the API server never calls it", w.Name))
	}
	return &out, errors.Join(append(errs, w.checkServer())...)
}

// checkServer returns an error if the handler or the URLs are unusable.
func (w *Webhook) checkServer() error {
	switch {
	case w.InProcess && w.NewHandler == nil:
		return fmt.Errorf("webhook %q: newHandler is nil", w.Name)
	case !w.InProcess && len(w.URLs) == 0:
		return fmt.Errorf("webhook %q: no URL to call", w.Name)
	}
	for _, text := range w.URLs {
		if u, err := url.Parse(text); err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
			return fmt.Errorf("webhook %q: %q is not the URL of a server: use a URL such as https://127.0.0.1:9443/mutate", w.Name, text)
		}
	}
	return nil
}

// newInstance returns a new instance of a webhook that runs in this process, or else the instance behind the first URL.
func (w *Webhook) newInstance(connection *Connection) Caller {
	if !w.InProcess {
		return w.Replicas[0]
	}
	return &instance{newHandler: w.NewHandler, connection: connection}
}

// Handles reports whether the rules match an operation on a resource.
func (w *Webhook) Handles(k *objects.Kind, operation admissionv1.Operation) bool {
	for _, rule := range w.Rules {
		if HasOrAll(rule.Operations, admissionregistrationv1.OperationType(operation), admissionregistrationv1.OperationAll) &&
			HasOrAll(rule.APIGroups, k.Resource.Group, "*") && HasOrAll(rule.APIVersions, k.Resource.Version, "*") && k.Within(rule.Scope) &&
			slices.ContainsFunc(rule.Resources, func(r string) bool {
				return r == "*" || r == "*/*" || r == k.Resource.Resource || r == k.Resource.Resource+"/*"
			}) {
			return true
		}
	}
	return false
}

// objectSelector parses a label selector. A nil selector matches everything, which is the API server's default.
func objectSelector(s *metav1.LabelSelector) (labels.Selector, error) {
	if s == nil {
		return labels.Everything(), nil
	}
	return metav1.LabelSelectorAsSelector(s)
}

// selects reports whether the objectSelector matches the object or the old object (predicates/object.Matcher).
func (w *Webhook) selects(list ...*objects.Object) bool {
	return slices.ContainsFunc(list, func(o *objects.Object) bool { return o != nil && w.selector.Matches(labelsOf(o)) })
}

func labelsOf(o *objects.Object) labels.Set {
	set := labels.Set{}
	value, _ := tree.Get(o.Doc, edits.Metadata.Member("labels"))
	found, _ := value.(map[string]any)
	for name, text := range found {
		set[name], _ = text.(string)
	}
	return set
}

// HasOrAll reports whether a list in a rule contains the value one or the wildcard all.
func HasOrAll[T comparable](list []T, one, all T) bool {
	return slices.Contains(list, one) || slices.Contains(list, all)
}

// Versions returns the review versions that the webhook declares and the API server supports. The API server uses the
// first of them.
func (w *Webhook) Versions() []string {
	var known []string
	for _, v := range w.AdmissionReviewVersions {
		if v == "v1" || v == "v1beta1" {
			known = append(known, v)
		}
	}
	if len(known) == 0 {
		return []string{"v1"}
	}
	return known
}

// Timeout returns how long the API server waits for a response.
func (w *Webhook) Timeout() time.Duration {
	if w.TimeoutSeconds == nil {
		return 10 * time.Second // the default of v1
	}
	return time.Duration(*w.TimeoutSeconds) * time.Second
}

// DryRuns reports whether the API server calls the webhook in a dry run.
func (w *Webhook) DryRuns() bool {
	return w.SideEffects == nil || *w.SideEffects == admissionregistrationv1.SideEffectClassNone ||
		*w.SideEffects == admissionregistrationv1.SideEffectClassNoneOnDryRun
}

// reinvoked reports whether the API server calls the webhook again after another webhook changed the object.
func (w *Webhook) reinvoked() bool {
	return w.ReinvocationPolicy != nil && *w.ReinvocationPolicy == admissionregistrationv1.IfNeededReinvocationPolicy
}

// NeverReinvoked reports whether the API server calls the webhook once for a request, whatever other webhooks do.
func (w *Webhook) NeverReinvoked() bool { return !w.reinvoked() }
