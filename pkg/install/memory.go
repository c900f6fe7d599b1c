// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// A memory records what one Run or Promote, which may wait for long, has seen since it began. It must not undo later
// events: that the webhook was uninstalled, or that its Deployment moved on to another version.
type memory struct {
	there    map[sort]bool // configurations that existed
	template string        // the Deployment's Pod template when it was first read
	beside   bool          // a server runs or starts in the same program
	open     bool          // the last apply used Ignore in place of Fail
}

func (m *memory) saw(w wanted) {
	if m.there == nil {
		m.there = map[sort]bool{}
	}
	m.there[w.sort] = true
}

// missed returns an error if our configurations existed and were removed. If only one of the two is gone, another version of
// the program without hooks of that kind may have removed it, which is no error.
func (i *Installer) missed(ctx context.Context, w wanted, found live, m *memory) error {
	if !m.there[w.sort] || found.has(markerName(w.name)) {
		return nil
	}
	for _, other := range i.wanted {
		if found, err := i.find(ctx, other); err != nil || found.has(markerName(w.name)) {
			return err
		}
	}
	return fmt.Errorf("%s %s: %w", kindOf[w.sort], w.name, ErrRemoved)
}

// remember records the state at the beginning.
func (i *Installer) remember(ctx context.Context, m *memory) error {
	for _, w := range i.wanted {
		found, err := i.find(ctx, w)
		if err != nil {
			return err
		}
		if found.has(markerName(w.name)) {
			m.saw(w)
		}
	}
	return nil
}

// errStandBack says that this replica must not install for now.
var errStandBack = errors.New("another template than at the start of this program is being rolled out: its replicas install")

// standBack returns an error if the Deployment has moved on to another program. A Deployment that cannot be read is no
// error, because the caller does not wait for it.
func (i *Installer) standBack(ctx context.Context, m *memory) error {
	if i.o.Deployment == "" {
		return nil
	}
	d, template, err := i.readDeployment(ctx)
	if err != nil || !m.differs(template) {
		return nil
	}
	if rolledOut(d) == nil {
		return i.replaced()
	}
	return fmt.Errorf("Deployment %s/%s: %w", i.o.namespace(), i.o.Deployment, errStandBack)
}

func (i *Installer) replaced() error {
	return fmt.Errorf("Deployment %s/%s has another template than at the start of this program, and is rolled out: %w", i.o.namespace(), i.o.Deployment, ErrSuperseded)
}

// differs reports whether the template has changed since the beginning.
func (m *memory) differs(template string) bool {
	if m.template == "" {
		m.template = template
	}
	return m.template != template
}

// readDeployment returns the Deployment and its template as JSON.
func (i *Installer) readDeployment(ctx context.Context) (*appsv1.Deployment, string, error) {
	object, err := i.cluster.deployment(ctx, i.o.Deployment)
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
