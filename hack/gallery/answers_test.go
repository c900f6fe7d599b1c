// SPDX-License-Identifier: Apache-2.0

package gallery

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
)

// An answer is the answer of an API server to one request.
type answer struct {
	request string
	result
	stored  map[string]any
	auditID string // of the last call of the API server
}

// text returns the text by which answers are compared.
func (a answer) text() string {
	if a.verdict != allowed {
		return fmt.Sprintf("%s: code %d, reason %q: %s%s", a.verdict, a.code, a.reason, a.message, a.advice)
	}
	text, err := json.Marshal(a.stored)
	if err != nil {
		return err.Error()
	}
	return "allowed: " + tokenVolumes.ReplaceAllString(string(text), "kube-api-access") + a.advice.String()
}

// answers sends the generated requests to an API server, and returns its answers. It appends the controller, the pass
// and a number to the names of objects, and removes them from the answers.
func answers(t *testing.T, c *controller, s *server, pass string) []answer {
	t.Helper()
	g := &generator{Rand: rand.New(rand.NewPCG(*seed, 3)), namespaces: s.namespaces}
	generate := c.generate
	if c.generateForServers != nil {
		generate = c.generateForServers
	}
	var list []answer
	for i := 0; len(list) < serverRequests; i++ {
		r := generate(g)
		suffix := fmt.Sprintf("-%s-%s%d", strings.ToLower(c.name), pass, i)
		s.warnings.take()
		got, err := c.sendTo(t.Context(), s, r, suffix, i%4 > 0)
		if errors.Is(err, errNotSendable) {
			continue
		}
		a := answer{request: fmt.Sprintf("%s %s %s of %s", r.operation, r.resource.Resource, r.subresource, text(r.object)), stored: got}
		if err != nil {
			a.result = resultOf(statusOf(err))
			a.message = plainMessage(a.message, suffix)
			a.result = c.plainly(a.result)
			if a.reason == metav1.StatusReasonInvalid { // validation lists the errors of a map in random order
				words := strings.FieldsFunc(a.message, func(r rune) bool { return strings.ContainsRune(" ,[]", r) })
				slices.Sort(words)
				a.message = strings.Join(words, " ")
			}
		} else {
			a.verdict, a.object = allowed, typed(t, r.kind, got)
			a.stored = normalized(got, suffix)
		}
		for _, warning := range s.warnings.take() {
			a.advice.warnings = append(a.advice.warnings, plainMessage(warning, suffix))
		}
		a.auditID = s.audit.last()
		list = append(list, a)
	}
	s.audit.annotate(t, list)
	return list
}

// errNotSendable means that a generated request must be skipped, because it cannot be sent to an API server.
var errNotSendable = errors.New("the request cannot be sent")

// sendTo sends the request. If valid is set, it makes the objects valid first, unless the controller does that itself.
func (c *controller) sendTo(ctx context.Context, s *server, r *request, suffix string, valid bool) (map[string]any, error) {
	switch {
	case c.send != nil:
		return c.send(s, ctx, r, suffix)
	case !sendable(r):
		return nil, errNotSendable
	case valid:
		r.makeValid()
	}
	return s.send(ctx, r, suffix)
}

// sendable reports whether the request can be sent to an API server, which has the old object or can create it.
func sendable(r *request) bool {
	resources := []string{
		"pods", "persistentvolumeclaims", "persistentvolumes", "volumeattributesclasses", "ingresses", "services", "priorityclasses",
		"namespaces", "replicationcontrollers", "replicasets", "deployments", "statefulsets", "daemonsets", "jobs", "cronjobs", "configmaps", "events",
	}
	return r.exists || slices.Contains(resources, r.resource.Resource) && r.subresource != "binding"
}

var (
	denials      = regexp.MustCompile(`admission webhook "[^"]*" denied the request: `)
	generated    = regexp.MustCompile(`-[bcdfghjklmnpqrstvwxz2456789]{5}\b`)
	tokenVolumes = regexp.MustCompile(`\bkube-api-access-([bcdfghjklmnpqrstvwxz2456789]{5}|token)\b`)
	addresses    = regexp.MustCompile(`\b10\.0\.\d+\.\d+\b`)
)

// plainMessage returns the message without the prefix of a webhook's denial, without the suffix of this pass, and
// without random names and addresses.
func plainMessage(message, suffix string) string {
	message = tokenVolumes.ReplaceAllString(message, "kube-api-access")
	message = addresses.ReplaceAllString(denials.ReplaceAllString(message, ""), "10.0.0.0")
	return generated.ReplaceAllString(strings.ReplaceAll(message, suffix, ""), "")
}

// typed returns the object as its Go type.
func typed(t *testing.T, kind schema.GroupVersionKind, content map[string]any) runtime.Object {
	t.Helper()
	object, err := legacyscheme.Scheme.New(kind)
	if err != nil {
		t.Fatal(err)
	}
	if content == nil {
		return object
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, object); err != nil {
		t.Fatal(err)
	}
	return object
}

// normalized removes what differs between two API servers: identities, times, addresses and random names.
func normalized(content map[string]any, suffix string) map[string]any {
	if content == nil {
		return nil
	}
	metadata := content["metadata"].(map[string]any)
	for _, key := range []string{"uid", "resourceVersion", "creationTimestamp", "managedFields", "deletionTimestamp"} {
		delete(metadata, key)
	}
	name := strings.TrimSuffix(metadata["name"].(string), suffix)
	if metadata["generateName"] != nil {
		name = generated.ReplaceAllString(name, "")
	}
	metadata["name"] = name
	if labels, ok := metadata["labels"].(map[string]any); ok && labels[corev1.LabelMetadataName] != nil {
		labels[corev1.LabelMetadataName] = name
	}
	unstructured.RemoveNestedField(content, "status", "lastPhaseTransitionTime")
	spec, _ := content["spec"].(map[string]any)
	for _, key := range []string{"clusterIP", "clusterIPs", "healthCheckNodePort"} {
		delete(spec, key)
	}
	ports, _ := spec["ports"].([]any)
	for _, port := range ports {
		delete(port.(map[string]any), "nodePort")
	}
	return content
}
