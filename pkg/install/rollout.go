// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// A rollout observes the webhook's Deployment during one Run or Promote. It notices when the Deployment moves on
// to another version of the program.
type rollout struct {
	*installation
	template string // the Deployment's Pod template when it was first read
}

// awaitReady polls until every replica is ready and Options.Ready returns nil.
func (r *rollout) awaitReady(ctx context.Context) error {
	pause, last := r.o.Interval, ""
	began := time.Now()
	reminded := began
	for {
		err := r.ready(ctx)
		switch {
		case err == nil:
			r.status.waits(nil)
			return nil
		case missingRight(err) != "", errors.Is(err, ErrSuperseded):
			return err
		case ctx.Err() == nil && err.Error() != last:
			last = err.Error()
			r.logger.Info("waiting", "for", "every replica to be ready", "seen", last)
		}
		if ctx.Err() == nil {
			r.status.waits(err)
		}
		if time.Since(reminded) >= reminder {
			reminded = time.Now()
			r.logger.Error(err, r.unready(), "waiting", time.Since(began).Round(time.Second).String(), "phase", r.status.current().Phase)
		}
		if pause = min(pause*3/2, 20*r.o.Interval); !sleep(ctx, pause) {
			return fmt.Errorf("waiting until every replica is ready: %w; last seen: %s", context.Cause(ctx), last)
		}
	}
}

// reminder is the interval at which a long wait for readiness is logged.
const reminder = 5 * time.Minute

// unready returns the log message for the wait until every replica is ready.
func (r *rollout) unready() string {
	if r.o.FailOpenFirst {
		return "not every replica is ready yet: until then failures of new webhooks are ignored, so requests can bypass them"
	}
	return "not every replica is ready yet"
}

func (r *rollout) ready(ctx context.Context) error {
	if r.o.Deployment != "" {
		d, template, err := r.readDeployment(ctx)
		if err != nil {
			return err
		}
		differs := r.differs(template)
		if err := rolledOut(d); err != nil {
			return fmt.Errorf("Deployment %s/%s: %w", d.Namespace, d.Name, err)
		}
		if differs {
			return r.replaced()
		}
	}
	if r.o.Ready != nil {
		return r.o.Ready(ctx)
	}
	return nil
}

// rolledOut returns nil if all replicas of a Deployment have its newest template and are ready, and otherwise the
// reason.
func rolledOut(d *appsv1.Deployment) error {
	var want int32 = 1
	if d.Spec.Replicas != nil {
		want = *d.Spec.Replicas
	}
	switch s := d.Status; {
	case s.ObservedGeneration < d.Generation:
		return errors.New("its latest change has not been observed yet")
	case want == 0:
		return errors.New("it is scaled to zero replicas")
	case s.UpdatedReplicas < want:
		return fmt.Errorf("%d of %d replicas have its newest template", s.UpdatedReplicas, want)
	case s.Replicas > s.UpdatedReplicas:
		return fmt.Errorf("%d replicas still have an older template", s.Replicas-s.UpdatedReplicas)
	case s.ReadyReplicas < want:
		return fmt.Errorf("%d of %d replicas are ready", s.ReadyReplicas, want)
	}
	return nil
}

// errStandBack says that this replica must not install for now.
var errStandBack = errors.New("its Pod template has changed since this program started, and is being rolled out: the new replicas install the webhooks")

// standBack returns an error if the Deployment has moved on to another Pod template. If it cannot read the Deployment,
// it returns nil: awaitReady reports that error later.
func (r *rollout) standBack(ctx context.Context) error {
	if r.o.Deployment == "" {
		return nil
	}
	d, template, err := r.readDeployment(ctx)
	if err != nil || !r.differs(template) {
		return nil
	}
	if rolledOut(d) == nil {
		return r.replaced()
	}
	return fmt.Errorf("Deployment %s/%s: %w", r.o.namespace(), r.o.Deployment, errStandBack)
}

func (r *rollout) replaced() error {
	return fmt.Errorf("Deployment %s/%s: its Pod template has changed since this program started, and the rollout is complete: %w", r.o.namespace(), r.o.Deployment, ErrSuperseded)
}

// differs reports whether the template has changed since the first call.
func (r *rollout) differs(template string) bool {
	if r.template == "" {
		r.template = template
	}
	return r.template != template
}

// readDeployment returns the Deployment and its template as JSON.
func (r *rollout) readDeployment(ctx context.Context) (*appsv1.Deployment, string, error) {
	object, err := r.cluster.deployment(ctx, r.o.Deployment)
	if err != nil {
		return nil, "", err
	}
	d := &appsv1.Deployment{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, d); err != nil {
		return nil, "", err
	}
	template, _, err := unstructured.NestedMap(object.Object, "spec", "template")
	if err != nil {
		return nil, "", err
	}
	text, err := json.Marshal(template)
	return d, string(text), err
}
