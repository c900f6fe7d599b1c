// SPDX-License-Identifier: Apache-2.0

package idempotence

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

// A Subject is the webhook, or several webhooks, under test. [Handler], [URL] and [Together] return one.
type Subject struct{ webhooks []*webhook }

// A webhook is a registration and the handler or URLs that serve it.
type webhook struct {
	admissionregistrationv1.MutatingWebhook
	newHandler func() http.Handler // of one in this process
	// replicas are instances that run already and must agree.
	replicas       []caller
	inProcess      bool
	selector       labels.Selector // of objects
	matches        conditions
	transportError *transportError // of the run
}

// fresh returns an instance without earlier calls, if the webhook runs in this process.
func (w *webhook) fresh() caller {
	if !w.inProcess {
		return w.replicas[0]
	}
	return &instance{newHandler: w.newHandler, transportError: w.transportError}
}

// Handler returns a subject that is served in this process. newHandler creates an instance, like a restart of the server: state
// outside of the returned handler is shared by all instances. The harness calls newHandler thousands of times, so create
// slow parts that keep no state of requests (a scheme, a client, templates) outside of it. The registration says when
// the webhook is called; its clientConfig is ignored.
func Handler(registration admissionregistrationv1.MutatingWebhook, newHandler func() http.Handler) Subject {
	return Subject{[]*webhook{{
		MutatingWebhook: registration, inProcess: true, newHandler: newHandler,
	}}}
}

// URL returns a subject that a server provides. Several URLs are replicas of one webhook, which must agree (L3). client must trust
// the server's certificate. With a nil client this machine must trust it, and no proxy is used. Redirects are followed
// as the API server does.
//
// If the server cannot be reached at the start, [Run] fails. If it becomes unreachable later, the report is incomplete. Neither fails a
// law. A call whose connection breaks is repeated once.
func URL(registration admissionregistrationv1.MutatingWebhook, client *http.Client, urls ...string) Subject {
	if client == nil {
		client = plainClient()
	}
	w := &webhook{MutatingWebhook: registration}
	for _, address := range urls {
		w.replicas = append(w.replicas, &urlCaller{client: client, url: address})
	}
	return Subject{[]*webhook{w}}
}

// Together returns a subject of several webhooks that serve one cluster, in this order. The whole set must be safe to call again, and
// each webhook is a rival of the others.
func Together(subjects ...Subject) Subject {
	var all Subject
	for _, s := range subjects {
		all.webhooks = append(all.webhooks, s.webhooks...)
	}
	return all
}

// checked returns a validated copy of the subject.
func (s Subject) checked(t *transportError) (Subject, error) {
	webhooks := make([]*webhook, len(s.webhooks))
	for i, w := range s.webhooks {
		mine := *w
		mine.transportError, mine.replicas = t, nil
		for _, c := range w.replicas {
			u := *c.(*urlCaller)
			u.transportError = t
			mine.replicas = append(mine.replicas, &u)
		}
		webhooks[i] = &mine
	}
	s.webhooks = webhooks
	return s, s.check()
}

func (s Subject) check() error {
	var errs []error
	for _, w := range s.webhooks {
		var err error
		if w.selector, err = objectSelector(w.ObjectSelector); err != nil {
			errs = append(errs, fmt.Errorf("webhook %q: objectSelector: %w", w.Name, err))
		}
		w.matches = w.compile()
	}
	if len(s.webhooks) == 0 {
		errs = append(errs, errors.New("no webhook to test"))
	}
	for _, w := range s.webhooks {
		if w.Name == "" {
			errs = append(errs, errors.New("the registration of a webhook has no name"))
		}
		if len(w.Rules) == 0 {
			errs = append(errs, fmt.Errorf("webhook %q: the registration has no rules, so the API server never calls it", w.Name))
		}
		errs = append(errs, w.checkServer())
	}
	return errors.Join(errs...)
}

// checkServer returns an error if the handler, the client or the URLs are unusable.
func (w *webhook) checkServer() error {
	switch {
	case w.inProcess && w.newHandler == nil:
		return fmt.Errorf("webhook %q: newHandler is nil", w.Name)
	case !w.inProcess && len(w.replicas) == 0:
		return fmt.Errorf("webhook %q: no URL to call", w.Name)
	}
	for _, c := range w.replicas {
		text := c.(*urlCaller).url
		if u, err := url.Parse(text); err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
			return fmt.Errorf("webhook %q: %q is no URL of a server, such as https://127.0.0.1:9443/mutate", w.Name, text)
		}
	}
	return nil
}

// handles reports whether the rules match an operation on a resource.
func (w *webhook) handles(k *objects.Kind, operation admissionv1.Operation) bool {
	for _, rule := range w.Rules {
		if hasOrAll(rule.Operations, admissionregistrationv1.OperationType(operation), admissionregistrationv1.OperationAll) &&
			hasOrAll(rule.APIGroups, k.Resource.Group, "*") && hasOrAll(rule.APIVersions, k.Resource.Version, "*") && k.Within(rule.Scope) &&
			slices.ContainsFunc(rule.Resources, func(r string) bool {
				return r == "*" || r == "*/*" || r == k.Resource.Resource || r == k.Resource.Resource+"/*"
			}) {
			return true
		}
	}
	return false
}

// objectSelector parses the objectSelector. Without one it matches everything, as the API server's defaults
// say.
func objectSelector(s *metav1.LabelSelector) (labels.Selector, error) {
	if s == nil {
		return labels.Everything(), nil
	}
	return metav1.LabelSelectorAsSelector(s)
}

// selects reports whether the objectSelector matches the object or the old object (predicates/object.Matcher).
func (w *webhook) selects(objects ...*objects.Object) bool {
	for _, o := range objects {
		if o == nil {
			continue
		}
		set := labels.Set{}
		value, _ := tree.Get(o.Doc, edits.Metadata.Member("labels"))
		found, _ := value.(map[string]any)
		for name, text := range found {
			set[name], _ = text.(string)
		}
		if w.selector.Matches(set) {
			return true
		}
	}
	return false
}

func hasOrAll[T comparable](list []T, one, all T) bool {
	return slices.Contains(list, one) || slices.Contains(list, all)
}

// versions returns the review versions that the webhook declares and the API server supports. The API server sends the
// first.
func (w *webhook) versions() []string {
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

// timeout returns how long the API server waits for a response.
func (w *webhook) timeout() time.Duration {
	if w.TimeoutSeconds == nil {
		return 10 * time.Second // the default of v1
	}
	return time.Duration(*w.TimeoutSeconds) * time.Second
}

// dryRuns reports whether the API server calls the webhook in a dry run.
func (w *webhook) dryRuns() bool {
	return w.SideEffects == nil || *w.SideEffects == admissionregistrationv1.SideEffectClassNone ||
		*w.SideEffects == admissionregistrationv1.SideEffectClassNoneOnDryRun
}

// names returns the names of the webhooks.
func (s Subject) names() (names []string) {
	for _, w := range s.webhooks {
		names = append(names, w.Name)
	}
	return names
}
