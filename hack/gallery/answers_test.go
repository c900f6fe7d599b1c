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
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
)

// An answer is the answer of an API server to one request.
type answer struct {
	request string
	sent    *request
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

// A pass contains the requests that are sent to an API server.
type pass struct {
	requests []prepared
	// generated contains the operations of all generated requests, even of those that cannot be sent.
	generated map[admission.Operation]bool
}

type prepared struct {
	*request
	suffix string // of the names of objects
	send   sender
}

// newPass generates requests. It creates their old objects on an API server without the controller and its hooks. It
// appends the controller, the name of the pass and a number to the names of objects.
func newPass(t *testing.T, c *controller, plain *server, name string) pass {
	t.Helper()
	g := &generator{Rand: rand.New(rand.NewPCG(*seed, 3)), namespaces: plain.namespaces}
	generate, prepare := c.generate, c.prepare
	if c.generateForServers != nil {
		generate = c.generateForServers
	}
	if prepare == nil {
		prepare = (*server).prepareSendable
	}
	p := pass{generated: map[admission.Operation]bool{}}
	for i := 0; len(p.requests) < serverRequests; i++ {
		r := generate(g)
		p.generated[r.operation] = true
		if c.prepare == nil && i%4 > 0 {
			r.makeValid()
		}
		suffix := fmt.Sprintf("-%s-%s%d", strings.ToLower(c.name), name, i)
		send, err := prepare(plain, t.Context(), r, suffix)
		switch {
		case err == nil:
			p.requests = append(p.requests, prepared{r, suffix, send})
		case !errors.Is(err, errNotSendable):
			t.Fatal(err)
		}
	}
	return p
}

// answers sends the requests to an API server, and returns its answers. It removes the suffixes of the names.
func (p pass) answers(t *testing.T, c *controller, s *server) []answer {
	t.Helper()
	var list []answer
	for _, r := range p.requests {
		s.warnings.take()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		got, err := r.send(ctx, s)
		cancel()
		a := answer{request: fmt.Sprintf("%s %s %s of %s", r.operation, r.resource.Resource, r.subresource, text(r.object)), sent: r.request, stored: got}
		if err != nil {
			a.result = resultOf(statusOf(err))
			a.message = plainMessage(a.message, r.suffix)
			a.result = c.plainly(a.result)
			if a.reason == metav1.StatusReasonInvalid { // validation lists the errors of a map in random order
				words := strings.FieldsFunc(a.message, func(r rune) bool { return strings.ContainsRune(" ,[]", r) })
				slices.Sort(words)
				a.message = strings.Join(words, " ")
			}
		} else {
			a.verdict, a.object = allowed, typed(t, r.kind, got)
			a.stored = normalized(got, r.suffix)
		}
		for _, warning := range s.warnings.take() {
			a.advice.warnings = append(a.advice.warnings, plainMessage(warning, r.suffix))
		}
		a.auditID = s.audit.last()
		list = append(list, a)
	}
	s.audit.annotate(t, list)
	return list
}

// errNotSendable means that a generated request must be skipped, because it cannot be sent to an API server.
var errNotSendable = errors.New("the request cannot be sent")

// prepareSendable is prepare for requests that can be sent.
func (s *server) prepareSendable(ctx context.Context, r *request, suffix string) (sender, error) {
	if !sendable(r) {
		return nil, errNotSendable
	}
	return s.prepare(ctx, r, suffix)
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
