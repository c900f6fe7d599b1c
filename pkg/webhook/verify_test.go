// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	kjson "sigs.k8s.io/json"

	"github.com/admitkit/admitkit/pkg/webhook"
)

// A verdict is the expected kind of an answer.
type verdict string

const (
	admits verdict = "admits"
	denies verdict = "denies"
	fails  verdict = "fails"
)

// TestTheAPIServerAcceptsEveryAnswer calls hooks with random handlers, in both versions of the review. If the handler
// decides, the answer must be a review that passes the API server's VerifyAdmissionResponse. If the handler fails, it
// must be an HTTP error with a Status.
func TestTheAPIServerAcceptsEveryAnswer(t *testing.T) {
	const n = 2_000
	count := map[verdict]int{}
	for seed := range uint64(n) {
		g := generator{rand.New(rand.NewPCG(seed, 7))}
		c := call{version: versions[seed%2], object: g.object(), more: fmt.Sprintf(`"dryRun":%t`, seed%3 == 0)}
		isMutating := seed%4 < 2
		var want verdict
		var after *corev1.Pod
		handler := func(_ context.Context, req *webhook.Request[corev1.Pod]) error {
			g := generator{rand.New(rand.NewPCG(seed, 8))}
			g.change(req.Object)
			g.say(req)
			after = req.Object.DeepCopy()
			var err error
			if want = admits; g.IntN(3) > 0 {
				want = fails // the verdict if g.result panics
				want, err = g.result()
			}
			return err
		}
		hook := validating(handler)
		if isMutating {
			hook = mutating(handler)
		}
		a := ask(t, hook, c)
		check(t, c, a, isMutating, want, after)
		if again := ask(t, hook, c); !bytes.Equal(a.body, again.body) || a.code != again.code {
			t.Errorf("the same call has two answers:\n%s%s", a.body, again.body)
		}
		if count[want]++; t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	t.Logf("%v", count)
	for _, v := range []verdict{admits, denies, fails} {
		if count[v] < n/10 {
			t.Errorf("only %d of %d calls %s: the generator leaves something out", count[v], n, v)
		}
	}
}

func check(t *testing.T, c call, a answer, isMutating bool, want verdict, after *corev1.Pod) {
	t.Helper()
	switch want {
	case fails:
		if status := a.failed(t); status.Details == nil || status.Details.UID != "u-1" {
			t.Errorf("the failure does not tell of its call: %s", a.body)
		}
	case denies:
		if status := a.denied(t, c, isMutating); status.Code < 400 || status.Code > 599 || status.Message == "" || status.Reason == "" {
			t.Errorf("the denial is not complete: %s", a.body)
		}
	case admits:
		patch, object := a.allowed(t, c, isMutating)
		var got corev1.Pod
		if err := kjson.UnmarshalCaseSensitivePreserveInts([]byte(object), &got); err != nil {
			t.Fatal(err)
		}
		if isMutating && !equality.Semantic.DeepEqual(&got, after) {
			t.Errorf("the patch %s\n of %s\n gives %s\n want %+v", patch, c.object, object, after)
		}
	}
}

// A generator builds random Pods, changes of them, and errors for handlers.
type generator struct{ *rand.Rand }

func (g generator) text() string {
	return []string{"no", "a longer text with \"quotes\" & <signs>", "", " ", "two\nlines", "tab\tand \x00", "bad \xff", "é😀\u2028", strings.Repeat("word ", 100)}[g.IntN(9)]
}

// valid returns a text in valid UTF-8, which JSON does not change.
func (g generator) valid() string { return strings.ToValidUTF8(g.text(), "\uFFFD") }

// result returns an error for a handler and the verdict to expect. It may also panic, so that the call fails.
func (g generator) result() (verdict, error) {
	switch g.IntN(10) {
	case 0:
		panic([]any{"oh", errors.New("oh"), nil, 7, http.ErrAbortHandler, struct{}{}}[g.IntN(6)])
	case 1:
		_ = ([]int)(nil)[g.IntN(3)] // a runtime error
	case 2:
		return fails, (*nilPanicking)(nil)
	}
	tree := g.tree(3)
	return tree.verdict(), tree.err
}

// nilPanicking is an error type whose method Error panics on a nil pointer.
type nilPanicking struct{ text string }

func (c *nilPanicking) Error() string { return c.text }

// An errorTree is an error and its leaves, in the order of errors.As.
type errorTree struct {
	err    error
	leaves []leaf
}

type leaf int

const (
	plainLeaf leaf = iota
	denyLeaf
	fieldLeaf
	clientLeaf // an API error of 400–499
	serverLeaf // any other API error
)

// verdict returns the expected verdict: denies if any leaf is a denial, if all leaves are field errors, or if the first
// API error has a code of 400–499. Otherwise it returns fails.
func (e errorTree) verdict() verdict {
	allFields := true
	for _, l := range e.leaves {
		if l == denyLeaf {
			return denies
		}
		allFields = allFields && l == fieldLeaf
	}
	if allFields {
		return denies
	}
	for _, l := range e.leaves {
		switch l {
		case clientLeaf:
			return denies
		case serverLeaf:
			return fails
		}
	}
	return fails
}

func (g generator) tree(depth int) errorTree {
	if depth == 0 || g.IntN(2) == 0 {
		return g.leaf()
	}
	first := g.tree(depth - 1)
	switch g.IntN(4) {
	case 0:
		return errorTree{fmt.Errorf("%s: %w", g.text(), first.err), first.leaves}
	case 1:
		second := g.tree(depth - 1)
		return errorTree{fmt.Errorf("%w and %w", first.err, second.err), append(first.leaves, second.leaves...)}
	case 2:
		second := g.tree(depth - 1)
		return errorTree{errors.Join(first.err, nil, second.err), append(first.leaves, second.leaves...)}
	}
	return errorTree{wrapped{first.err}, first.leaves}
}

// wrapped is an error type that wraps another error, as users define them.
type wrapped struct{ cause error }

func (w wrapped) Error() string { return "wrapped" }
func (w wrapped) Unwrap() error { return w.cause }

func (g generator) leaf() errorTree {
	pods, path := schema.GroupResource{Resource: "pods"}, field.NewPath("spec", "containers").Index(g.IntN(3))
	one := func(err error, l leaf) errorTree { return errorTree{err, []leaf{l}} }
	switch g.IntN(9) {
	case 0:
		return one(webhook.Deny(g.text()), denyLeaf)
	case 1:
		return one(webhook.DenyStatus(metav1.Status{Code: []int32{0, -1, 200, 400, 422, 503, 599, 600, 1000, 1 << 30}[g.IntN(10)],
			Reason: metav1.StatusReason(g.text()), Message: g.text(), Status: g.text(), Details: &metav1.StatusDetails{RetryAfterSeconds: int32(g.IntN(5))}}), denyLeaf)
	case 2:
		return one(webhook.DenyInvalid(field.ErrorList{field.Required(path, g.text()), field.Invalid(path, g.text(), g.text())}), fieldLeaf)
	case 3:
		return one(field.Forbidden(path, g.text()), fieldLeaf)
	case 4:
		return one(field.ErrorList{field.Duplicate(path, 1), field.TooMany(path, 3, 2)}.ToAggregate(), fieldLeaf)
	case 5:
		return one([]error{apierrors.NewForbidden(pods, "web", errors.New(g.text())), apierrors.NewConflict(pods, "web", errors.New(g.text())),
			apierrors.NewBadRequest(g.text()), apierrors.NewTooManyRequests(g.text(), 3), apierrors.NewNotFound(pods, "web")}[g.IntN(5)], clientLeaf)
	case 6:
		return one([]error{apierrors.NewInternalError(errors.New(g.text())), apierrors.NewServiceUnavailable(g.text()), apierrors.NewTimeoutError(g.text(), 2),
			&apierrors.StatusError{}, &apierrors.StatusError{ErrStatus: metav1.Status{Code: 200}}, &apierrors.StatusError{ErrStatus: metav1.Status{Code: 1000}}}[g.IntN(6)], serverLeaf)
	case 7:
		return one([]error{context.DeadlineExceeded, context.Canceled}[g.IntN(2)], plainLeaf)
	}
	return one(errors.New(g.text()), plainLeaf)
}

func (g generator) say(req *webhook.Request[corev1.Pod]) {
	for range g.IntN(4) {
		req.Warn(g.text())
		_ = req.Audit([]string{"ok", "a.b-c_d", "no/way", "", "-", g.text()}[g.IntN(6)], g.text()) // some keys are invalid and must be refused
	}
}

// object returns a Pod with fields that its Go type does not know.
func (g generator) object() string {
	containers := make([]string, 1+g.IntN(3))
	for i := range containers {
		containers[i] = fmt.Sprintf(`{"name":"c%d","future":%d,"image":"i","env":[{"name":"A","value":"1"}],"resources":{"limits":{"cpu":"0.5"}}}`, i, i)
	}
	return fmt.Sprintf(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web",%s"creationTimestamp":null},"future":{},"spec":{"containers":[%s]%s}}`,
		[]string{"", `"labels":null,`, `"labels":{"a":"1","b/c":"2"},`}[g.IntN(3)], strings.Join(containers, ","), []string{"", `,"hostNetwork":true,"future":[1]`}[g.IntN(2)])
}

// change makes up to four random changes to the Pod.
func (g generator) change(pod *corev1.Pod) {
	for range g.IntN(5) {
		cs := pod.Spec.Containers
		switch g.IntN(9) {
		case 0:
			pod.Labels = map[string]string{"x/y~z": g.valid()}
		case 1:
			pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: fmt.Sprint("new", len(cs)), Image: "i"})
		case 2:
			pod.Spec.Containers = append([]corev1.Container{}, cs[1:]...)
		case 3:
			g.Shuffle(len(cs), func(i, j int) { cs[i], cs[j] = cs[j], cs[i] })
		case 4:
			pod.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsUser: ptr.To[int64](1 << 60)}
		case 5:
			pod.Spec.HostNetwork = !pod.Spec.HostNetwork
		case 6:
			pod.Finalizers = append(pod.Finalizers, g.valid())
		case 7:
			pod.Spec.NodeSelector, pod.Labels = nil, nil
		default:
			for i := range cs {
				cs[i].Resources.Limits = corev1.ResourceList{"cpu": resource.MustParse("500m"), "memory": resource.MustParse("1Gi")}
				cs[i].Env = cs[i].Env[:g.IntN(len(cs[i].Env)+1)]
			}
		}
		if len(pod.Spec.Containers) == 0 {
			return
		}
	}
}
