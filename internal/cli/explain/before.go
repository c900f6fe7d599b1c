// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/admitkit/admitkit/internal/cli/cluster"
	"github.com/admitkit/admitkit/internal/problem"
	"github.com/admitkit/admitkit/pkg/chain"
)

// limitAnnotation is the annotation in which the plugin LimitRanger records the values that it set.
const limitAnnotation = "kubernetes.io/limit-ranger"

// withLimits explains the request as if LimitRanger had added its annotation. It returns nil if LimitRanger cannot add
// the annotation to the object, or if no condition reads annotations.
func (t *explainer) withLimits(ctx context.Context, engine *chain.Chain) (*chain.Explanation, error) {
	if isPod := t.req.resource.GroupResource() == (schema.GroupResource{Resource: "pods"}); !isPod || t.req.Operation != admissionv1.Create || t.req.SubResource != "" || t.noLimits {
		return nil, nil
	}
	if !slices.ContainsFunc(t.hooks, func(h hook) bool {
		return slices.ContainsFunc(h.conditions, func(c admissionregistrationv1.MatchCondition) bool {
			m := mentioned(c.Expression)
			return m.object && m.words["annotations"]
		})
	}) {
		return nil, nil
	}
	var pod map[string]any
	if err := json.Unmarshal(t.req.Object, &pod); err != nil {
		return nil, problem.New("%w", err)
	}
	metadata, _ := pod["metadata"].(map[string]any)
	if metadata == nil {
		return nil, nil
	}
	annotations, _ := metadata["annotations"].(map[string]any)
	if annotations == nil {
		annotations = map[string]any{}
		metadata["annotations"] = annotations
	}
	if annotations[limitAnnotation] == nil {
		annotations[limitAnnotation] = "LimitRanger plugin set: cpu request for container app"
	}
	request := t.req.Request
	var err error
	if request.Object, err = json.Marshal(pod); err != nil {
		return nil, err
	}
	return engine.Explain(ctx, request)
}

// byLimits sets the result of a condition on the annotations of a Pod to unknown if LimitRanger may add an annotation.
func (t *explainer) byLimits(webhook, predicate int, p *Predicate) {
	m := mentioned(p.Expression)
	if t.limited == nil || p.Answer == chain.Unknown || !m.object || !m.words["annotations"] {
		return
	}
	other := t.limited.Webhooks[webhook].Predicates
	if strings.Contains(p.Expression, limitAnnotation) || predicate >= len(other) || other[predicate].Result != p.Answer {
		p.set(chain.Unknown, fmt.Sprintf("it is %s for the object as it is written, but the plugin LimitRanger of the API server may add the annotation %s first", value(p), limitAnnotation))
	}
}

// noLimits reports whether a namespace of the cluster is known to have no LimitRange.
func (l *liveCluster) noLimits(ctx context.Context, namespace string) (bool, error) {
	found, err := l.client.CoreV1().LimitRanges(namespace).List(ctx, metav1.ListOptions{Limit: 1})
	if apierrors.IsForbidden(err) {
		return false, nil
	}
	if err != nil {
		return false, cluster.Explain(l.config, err)
	}
	return len(found.Items) == 0, nil
}
