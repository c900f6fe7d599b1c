// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"errors"
	"net/http"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/admitkit/admitkit/pkg/review"
)

// M41 to M44: webhooks that fail only after the object was created.

func lifecyclePatterns() []Case {
	return []Case{
		onDeployments("M41 adds a container in each update", onUpdate(blindSidecar)).breaks("L1"),
		podCase("M42 fails without an object", func() http.Handler { return needsObject{pods(tokenMounted)} }).
			on(create, admissionregistrationv1.Delete).breaks("L2"),
		onDeployments("M43 adds arguments on CREATE only", onCreate(withArgument)).breaks("L6"),
		onPods("M44 denies updates of Pods that it changed", refusesInUpdates).on(create, update).breaks("L2"),
	}
}

func lifecycleLookalikes() []Case {
	return []Case{
		onDeployments("M41 adds a missing container in each update", onUpdate(sidecarIfAbsent)),
		podCase("M42 allows requests without an object", func() http.Handler { return pods(tokenMounted) }).
			on(create, admissionregistrationv1.Delete),
		onDeployments("M43 adds arguments", withArgument),
		onPods("M44 denies all updates", refusesUpdates).on(create, update),
	}
}

// refusesInUpdates adds its variable on CREATE, but denies every object with that variable on UPDATE. So such Pods can
// never be updated.
func refusesInUpdates(r *review.Request, p *corev1.Pod) error {
	if r.Operation == admissionv1.Update {
		return refusesOwnEnv(r, p)
	}
	return refusesOtherEnv(r, p)
}

// refusesUpdates denies every UPDATE, whatever the Pod contains.
func refusesUpdates(r *review.Request, p *corev1.Pod) error {
	if r.Operation == admissionv1.Update {
		return denial("what is made stays as it is")
	}
	return refusesOtherEnv(r, p)
}

// withArgument adds its argument to each container with arguments. If it is called on CREATE only,
// applying the manifest again removes the argument.
var withArgument = changesAppContainers(func(c *corev1.Container) {
	if len(c.Args) > 0 && !slices.Contains(c.Args, "--agent") {
		c.Args = append(c.Args, "--agent")
	}
})

// A needsObject is a handler that fails if the request has no object, as on DELETE.
type needsObject struct{ handler }

func (h needsObject) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	serve(w, req, func(r *review.Request) ([]byte, error) {
		if r.Object == nil {
			return nil, errors.New("there is no object")
		}
		d, p, err := h.decide(r)
		return review.AppendMutating(nil, r, d, p), err
	})
}
