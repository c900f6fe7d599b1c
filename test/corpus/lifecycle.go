// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"bytes"
	"io"
	"net/http"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/admitkit/admitkit/pkg/review"
)

// M41 to M44: failures that occur only after the object was created.

func lifecyclePatterns() []Case {
	return []Case{
		onDeployments("M41 adds a container in each update", onUpdate(appendsSide)).breaks("L1"),
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

func onUpdate(e edit) edit {
	return func(r *review.Request, p *corev1.Pod) error {
		if r.Operation != admissionv1.Update {
			return nil
		}
		return e(r, p)
	}
}

// refusesInUpdates rejects its own variable in updates.
func refusesInUpdates(r *review.Request, p *corev1.Pod) error {
	if r.Operation == admissionv1.Update {
		return refusesOwnEnv(r, p)
	}
	return refusesOtherEnv(r, p)
}

func refusesUpdates(r *review.Request, p *corev1.Pod) error {
	if r.Operation == admissionv1.Update {
		return denial("what is made stays as it is")
	}
	return refusesOtherEnv(r, p)
}

func appendsSide(_ *review.Request, p *corev1.Pod) error {
	p.Spec.Containers = append(p.Spec.Containers, sidecar())
	return nil
}

func withArgument(_ *review.Request, p *corev1.Pod) error {
	for i := range p.Spec.Containers {
		if c := &p.Spec.Containers[i]; len(c.Args) > 0 && !slices.Contains(c.Args, "--agent") {
			c.Args = append(c.Args, "--agent")
		}
	}
	return nil
}

// needsObject is a handler that assumes that every request has an object.
type needsObject struct{ handler }

func (h needsObject) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if r, err := review.Decode(body); err == nil && r.Object == nil {
		http.Error(w, "there is no object", http.StatusInternalServerError)
		return
	}
	req.Body = io.NopCloser(bytes.NewReader(body))
	h.handler.ServeHTTP(w, req)
}
