// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/admitkit/admitkit/examples/sidecar-injector/inject"
)

const folder = "hack/demo/"

type story struct {
	title string
	tell  func(context.Context, *demo) error
}

var stories = []story{
	{"A Pod asks for a proxy and has a label that is deprecated", tellInjection},
	{"A Pod breaks two rules", tellDenial},
	{"An object is protected from deletion", tellProtection},
	{"A side effect: new namespaces are recorded, but not in a dry run", tellSideEffect},
}

func tellInjection(ctx context.Context, d *demo) error {
	if err := d.kubectl(ctx, true, []string{"Warning: metadata.labels[owner] is deprecated", "pod/shop created"},
		"apply", "-f", folder+"pod.yaml"); err != nil {
		return err
	}
	user, stored, err := d.pods(ctx)
	if err != nil {
		return err
	}
	lines, err := diffYAML(written(user), written(stored))
	if err != nil {
		return err
	}
	d.progress("\nWhat is stored, compared with pod.yaml (+ added; the API server's own defaults are left out):")
	d.diff(lines)
	for _, line := range lines {
		if strings.HasPrefix(line, "-") {
			return fmt.Errorf("the Pod lost a line of the user: %s", line)
		}
	}
	added := strings.Join(lines, "\n")
	for _, part := range []string{"+   - args:", "name: " + inject.ContainerName, "+   - emptyDir:", "+     volumeMounts:\n+     - mountPath: " + inject.MountPath} {
		if !strings.Contains(added, part) {
			return fmt.Errorf("the Pod was stored without %q", part)
		}
	}
	return nil
}

// pods returns the Pod as written by the user and as stored.
func (d *demo) pods(ctx context.Context) (user, stored map[string]any, err error) {
	text, err := os.ReadFile(folder + "pod.yaml")
	if err != nil {
		return nil, nil, err
	}
	if err := yaml.Unmarshal(text, &user); err != nil {
		return nil, nil, err
	}
	var pod unstructured.Unstructured
	pod.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
	err = d.cluster.Client.Get(ctx, types.NamespacedName{Namespace: "shop", Name: "shop"}, &pod)
	return user, pod.Object, err
}

func tellDenial(ctx context.Context, d *demo) error {
	return d.kubectl(ctx, false, []string{"spec.containers[0].image", "spec.containers[0].resources.limits[memory]"},
		"apply", "-f", folder+"bad-pod.yaml")
}

func tellProtection(ctx context.Context, d *demo) error {
	object := []string{"configmap/prices", "--namespace=shop"}
	if err := d.kubectl(ctx, true, nil, "apply", "-f", folder+"prices.yaml"); err != nil {
		return err
	}
	if err := d.kubectl(ctx, false, []string{`denied the request: ConfigMap "prices"`}, append([]string{"delete"}, object...)...); err != nil {
		return err
	}
	if err := d.kubectl(ctx, true, nil, append([]string{"annotate"}, append(object, "policy.example.com/allow-deletion=true")...)...); err != nil {
		return err
	}
	return d.kubectl(ctx, true, []string{"deleted"}, append([]string{"delete"}, object...)...)
}

func tellSideEffect(ctx context.Context, d *demo) error {
	if err := d.kubectl(ctx, true, []string{"created (server dry run)"}, "apply", "-f", folder+"billing.yaml", "--dry-run=server"); err != nil {
		return err
	}
	if _, err := os.Stat(d.ledger); !errors.Is(err, os.ErrNotExist) {
		return errors.Join(errors.New("the dry run left a record in the ledger"), err)
	}
	d.progress("There is no ledger yet.\n")
	if err := d.kubectl(ctx, true, []string{"namespace/billing created"}, "apply", "-f", folder+"billing.yaml"); err != nil {
		return err
	}
	ledger, err := os.ReadFile(d.ledger)
	if err != nil {
		return err
	}
	d.progress("The ledger: %s", strings.TrimSpace(string(ledger)))
	if strings.Count(string(ledger), "\n") != 1 || !strings.Contains(string(ledger), `"team":"payments"`) {
		return errors.New("the ledger must have exactly one record, of the team payments")
	}
	return nil
}
