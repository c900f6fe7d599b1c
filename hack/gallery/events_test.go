// SPDX-License-Identifier: Apache-2.0

package gallery

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	_ "k8s.io/kubernetes/pkg/apis/events/install"
	originallimit "k8s.io/kubernetes/plugin/pkg/admission/eventratelimit"
	"k8s.io/utils/clock"

	"github.com/admitkit/admitkit/examples/gallery/eventratelimit"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// eventControllers returns the controller that limits Events. In process, the original and the hook use the clock of a
// synctest bubble. On API servers, the requests for one bucket are sent within less than a second, in which no bucket
// gets a token. The second configuration never denies, because TestTogether uses it with the real clock.
func eventControllers() []*controller {
	return []*controller{{
		name: originallimit.PluginName, register: originallimit.Register, timed: true,
		configurations: []string{
			limitsHead + "- {type: Server, qps: 5, burst: 20}\n",
			limitsHead + "- {type: Server, qps: 1, burst: 1000000000}\n",
			limitsHead + "- {type: Namespace, qps: 1, burst: 3, cacheSize: 3}\n- {type: User, qps: 2, burst: 5, cacheSize: 2}\n",
			limitsHead + "- {type: SourceAndObject, qps: 1, burst: 2, cacheSize: 5}\n- {type: Server, qps: 50, burst: 100, cacheSize: -1}\n",
			limitsHead + "- {type: SourceAndObject, qps: 1, burst: 2}\n- {type: Namespace, qps: 1, burst: 3, cacheSize: 1}\n- {type: User, qps: 1, burst: 3, cacheSize: 1}\n",
		},
		hooks: func(t *testing.T, _ cluster, file string) []*webhook.Hook {
			return []*webhook.Hook{eventratelimit.Hook(load(t, file, eventratelimit.Load), clock.RealClock{})}
		},
		edges: (*generator).eventEdges, generate: (*generator).eventRequest, generateForServers: eventSeries(),
	}}
}

const limitsHead = "apiVersion: eventratelimit.admission.k8s.io/v1alpha1\nkind: Configuration\nlimits:\n"

func onEvents(op admission.Operation, event, old *corev1.Event) *request {
	return on(op, corev1.SchemeGroupVersion.WithKind("Event"), "events", "", event, old)
}

// eventOf returns an Event about the object.
func eventOf(object corev1.ObjectReference, source corev1.EventSource) *corev1.Event {
	return &corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: "e", Namespace: object.Namespace}, InvolvedObject: object, Source: source}
}

// newEventOf returns an Event of the group events.k8s.io.
func newEventOf(object corev1.ObjectReference) *eventsv1.Event {
	return &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Name: "e", Namespace: object.Namespace}, Regarding: object, EventTime: metav1.NewMicroTime(time.Unix(1_700_000_000, 0)),
		ReportingController: "example.com/controller", ReportingInstance: "a", Action: "Test", Reason: "Test", Type: corev1.EventTypeNormal,
	}
}

func onNewEvents(op admission.Operation, event, old *eventsv1.Event) *request {
	return on(op, eventsv1.SchemeGroupVersion.WithKind("Event"), "events", "", event, old)
}

// eventEdges returns series of Events that differ in one part of the key of a bucket.
func (g *generator) eventEdges() (all []*request) {
	object := corev1.ObjectReference{Kind: "Pod", Namespace: "plain", Name: "shop"}
	parts := []func(*corev1.Event, string){
		func(*corev1.Event, string) {},
		func(e *corev1.Event, s string) { e.Source.Component = s },
		func(e *corev1.Event, s string) { e.Source.Host = s },
		func(e *corev1.Event, s string) { e.InvolvedObject.Kind = s },
		func(e *corev1.Event, s string) { e.InvolvedObject.Name = s },
		func(e *corev1.Event, s string) { e.InvolvedObject.UID = types.UID(s) },
		func(e *corev1.Event, s string) { e.InvolvedObject.APIVersion = s },
		func(e *corev1.Event, s string) { e.InvolvedObject.FieldPath = s }, // not a part of the key
		func(e *corev1.Event, s string) { e.ReportingController = s },      // not a part of the key either
		func(e *corev1.Event, s string) { e.Namespace = s },
	}
	for _, set := range parts {
		for i := range 8 {
			e := eventOf(object, corev1.EventSource{Component: "c"})
			set(e, []string{"a", "", "ab"}[i%3])
			all = append(all, onEvents(admission.Create, e, nil))
			dry := onEvents(admission.Create, e, nil)
			dry.dryRun = true
			all = append(all, dry, onNewEvents(admission.Create, newEventOf(e.InvolvedObject), nil), onEvents(admission.Update, e, e.DeepCopy()), onEvents(admission.Delete, nil, e))
		}
	}
	return all
}

var eventUsers = []user.Info{
	nil, &user.DefaultInfo{}, &user.DefaultInfo{Name: "ben", UID: "1"}, &user.DefaultInfo{Name: "ben", UID: "2"}, &user.DefaultInfo{Name: "system:node:a"},
}

func (g *generator) eventRequest() *request {
	object := corev1.ObjectReference{Kind: pick(g, "Pod", "Node"), Namespace: pick(g, g.namespaces[:4]...).Name, Name: pick(g, "a", "ab", ""), UID: pick(g, types.UID("b"), "")}
	e := eventOf(object, corev1.EventSource{Component: pick(g, "a", "ab", ""), Host: pick(g, "b", "")})
	r := g.eventOperation(e, object)
	r.user, r.dryRun = pick(g, eventUsers...), g.oneIn(8)
	return r
}

func (g *generator) eventOperation(e *corev1.Event, object corev1.ObjectReference) *request {
	switch n := g.IntN(20); {
	case n < 12:
		return onEvents(admission.Create, e, nil)
	case n < 15:
		old := e.DeepCopy()
		e.Count = 2
		return onEvents(admission.Update, e, old)
	case n < 16:
		return onEvents(admission.Delete, nil, e)
	case n < 18:
		return onNewEvents(admission.Create, newEventOf(object), nil)
	case n < 19:
		old := newEventOf(object)
		updated := old.DeepCopy()
		updated.Series = &eventsv1.EventSeries{Count: 2, LastObservedTime: metav1.NewMicroTime(time.Unix(1_700_000_001, 0))}
		return onNewEvents(admission.Update, updated, old)
	}
	return onPods(admission.Create, "", g.pod(), nil)
}

// A series is a short run of requests in one namespace. The next series uses other buckets: other objects, and another
// namespace and other users, because the limits for these remember only one bucket.
type series struct {
	number, left int
	namespace    string
}

// eventSeries returns a generator of requests for API servers. Each generator has its own series.
func eventSeries() func(*generator) *request {
	current := map[*generator]*series{}
	return func(g *generator) *request {
		if current[g] == nil {
			current[g] = &series{}
		}
		return current[g].next(g)
	}
}

func (s *series) next(g *generator) *request {
	if s.left == 0 {
		others := slices.DeleteFunc(slices.Clone(g.namespaces), func(ns *corev1.Namespace) bool { return ns.Name == s.namespace })
		s.number, s.left, s.namespace = s.number+1, 2+g.IntN(6), pick(g, others...).Name
	}
	s.left--
	object := corev1.ObjectReference{Kind: "Pod", Namespace: s.namespace, Name: pick(g, "a", "b"), UID: types.UID(fmt.Sprint(s.number))}
	r := g.eventOperation(eventOf(object, corev1.EventSource{Component: pick(g, "c", "c", "d")}), object)
	r.dryRun = g.oneIn(8)
	if g.IntN(3) > 0 {
		r.user = &user.DefaultInfo{Name: fmt.Sprintf("user-%d-%d", s.number, g.IntN(2)), Groups: []string{user.SystemPrivilegedGroup}}
	}
	return r
}
