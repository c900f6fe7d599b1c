// SPDX-License-Identifier: Apache-2.0

package access_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"

	"github.com/admitkit/admitkit/pkg/access"
)

// A server is a client that answers each review with the function answer, and records the specs of the reviews.
type server struct {
	authorizationclient.AuthorizationV1Interface
	authorizationclient.SubjectAccessReviewInterface
	mu     sync.Mutex
	specs  []authorizationv1.SubjectAccessReviewSpec
	answer func(context.Context) (authorizationv1.SubjectAccessReviewStatus, error)
}

func (s *server) SubjectAccessReviews() authorizationclient.SubjectAccessReviewInterface { return s }

func (s *server) LocalSubjectAccessReviews(namespace string) authorizationclient.LocalSubjectAccessReviewInterface {
	return local{s, namespace}
}

func (s *server) Create(ctx context.Context, r *authorizationv1.SubjectAccessReview, _ metav1.CreateOptions) (*authorizationv1.SubjectAccessReview, error) {
	s.mu.Lock()
	s.specs = append(s.specs, r.Spec)
	s.mu.Unlock()
	status, err := s.answer(ctx)
	return &authorizationv1.SubjectAccessReview{Status: status}, err
}

func (s *server) asked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.specs)
}

type local struct {
	*server
	namespace string
}

func (l local) Create(ctx context.Context, r *authorizationv1.LocalSubjectAccessReview, o metav1.CreateOptions) (*authorizationv1.LocalSubjectAccessReview, error) {
	if r.Namespace != l.namespace {
		return nil, errors.New("the namespaces differ")
	}
	answered, err := l.server.Create(ctx, &authorizationv1.SubjectAccessReview{Spec: r.Spec}, o)
	return &authorizationv1.LocalSubjectAccessReview{Status: answered.Status}, err
}

func always(status authorizationv1.SubjectAccessReviewStatus) func(context.Context) (authorizationv1.SubjectAccessReviewStatus, error) {
	return func(context.Context) (authorizationv1.SubjectAccessReviewStatus, error) { return status, nil }
}

func authorizer(t *testing.T, s *server, o access.Options) *access.Authorizer {
	t.Helper()
	o.Client = s
	a, err := access.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

var (
	ada = authenticationv1.UserInfo{
		Username: "ada", UID: "u-7", Groups: []string{"dev", "system:authenticated"},
		Extra: map[string]authenticationv1.ExtraValue{"scopes": {"a", "b"}},
	}
	updatePods = authorizationv1.ResourceAttributes{Namespace: "shop", Verb: "update", Resource: "pods", Subresource: "finalizers", Name: "web"}
)

// TestReviewsHoldTheWholeUser checks that a review contains the user's uid and extra, which some authorizers need.
func TestReviewsHoldTheWholeUser(t *testing.T) {
	for name, options := range map[string]access.Options{"cluster": {}, "one namespace": {Namespace: "shop"}} {
		t.Run(name, func(t *testing.T) {
			s := &server{answer: always(authorizationv1.SubjectAccessReviewStatus{Allowed: true, Reason: "by role"})}
			answer, err := authorizer(t, s, options).May(t.Context(), ada, updatePods)
			if err != nil || answer != (access.Answer{Allowed: true, Reason: "by role"}) {
				t.Fatalf("got %+v, %v", answer, err)
			}
			got, _ := json.Marshal(s.specs[0])
			const want = `{"resourceAttributes":{"namespace":"shop","verb":"update","resource":"pods","subresource":"finalizers","name":"web"},"user":"ada","groups":["dev","system:authenticated"],"extra":{"scopes":["a","b"]},"uid":"u-7"}`
			if string(got) != want {
				t.Errorf("\n got %s\nwant %s", got, want)
			}
		})
	}
	t.Run("a path", func(t *testing.T) {
		s := &server{answer: always(authorizationv1.SubjectAccessReviewStatus{})}
		if _, err := authorizer(t, s, access.Options{}).MayRequest(t.Context(), ada, authorizationv1.NonResourceAttributes{Path: "/metrics", Verb: "get"}); err != nil {
			t.Fatal(err)
		}
		if got := s.specs[0].NonResourceAttributes; got == nil || got.Path != "/metrics" || s.specs[0].ResourceAttributes != nil {
			t.Errorf("got %+v", s.specs[0])
		}
	})
}

func TestAnswers(t *testing.T) {
	for name, in := range map[string]struct {
		status authorizationv1.SubjectAccessReviewStatus
		want   access.Answer
	}{
		"allowed":                      {authorizationv1.SubjectAccessReviewStatus{Allowed: true}, access.Answer{Allowed: true}},
		"no opinion":                   {authorizationv1.SubjectAccessReviewStatus{}, access.Answer{}},
		"denied":                       {authorizationv1.SubjectAccessReviewStatus{Denied: true, Reason: "no"}, access.Answer{Denied: true, Reason: "no"}},
		"both, which is not allowed":   {authorizationv1.SubjectAccessReviewStatus{Allowed: true, Denied: true}, access.Answer{Denied: true}},
		"an authorizer failed":         {authorizationv1.SubjectAccessReviewStatus{EvaluationError: "role x not found"}, access.Answer{EvaluationError: "role x not found"}},
		"allowed in spite of an error": {authorizationv1.SubjectAccessReviewStatus{Allowed: true, EvaluationError: "role x not found"}, access.Answer{Allowed: true, EvaluationError: "role x not found"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := authorizer(t, &server{answer: always(in.status)}, access.Options{}).May(t.Context(), ada, updatePods)
			if err != nil || got != in.want {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

func TestAnswersAreKept(t *testing.T) {
	for _, in := range []struct {
		reason  string
		allowed bool
		options access.Options
		kept    time.Duration // 0: not kept
	}{
		{reason: "allowed, 5 minutes", allowed: true, kept: 5 * time.Minute},
		{reason: "denied, 30 seconds", kept: 30 * time.Second},
		{reason: "allowed, as set", allowed: true, options: access.Options{AllowedFor: time.Second}, kept: time.Second},
		{reason: "allowed, not kept", allowed: true, options: access.Options{AllowedFor: -1}},
		{reason: "denied, not kept", options: access.Options{DeniedFor: -1}},
		{reason: "no room", allowed: true, options: access.Options{Size: -1}},
	} {
		t.Run(in.reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &server{answer: always(authorizationv1.SubjectAccessReviewStatus{Allowed: in.allowed})}
				a := authorizer(t, s, in.options)
				ask := func(want int) {
					t.Helper()
					if got, err := a.May(t.Context(), ada, updatePods); err != nil || got.Allowed != in.allowed {
						t.Fatalf("got %+v, %v", got, err)
					}
					if s.asked() != want {
						t.Errorf("got %d reviews, want %d", s.asked(), want)
					}
				}
				ask(1)
				if in.kept == 0 {
					ask(2)
					return
				}
				<-time.After(in.kept - time.Millisecond) // on the clock of the bubble
				ask(1)
				<-time.After(2 * time.Millisecond) // on the clock of the bubble
				ask(2)
			})
		})
	}
}

// TestAnswersAreForOneQuestion checks that the key under which an answer is kept contains every part of the user and
// the question.
func TestAnswersAreForOneQuestion(t *testing.T) {
	s := &server{answer: always(authorizationv1.SubjectAccessReviewStatus{Allowed: true})}
	a := authorizer(t, s, access.Options{})
	users := []authenticationv1.UserInfo{ada, {Username: "ada"}, {Username: "ada", UID: "u-8"}, {Username: "ada", Groups: []string{"dev"}}, {Username: "ada", Extra: map[string]authenticationv1.ExtraValue{"scopes": {"a"}}}}
	questions := []authorizationv1.ResourceAttributes{updatePods, {Verb: "update"}, {Verb: "get"}, {Verb: "get", Group: "apps"}, {Verb: "get", Version: "v1"}, {Verb: "get", Name: "a"}, {Verb: "get", Subresource: "a"}, {Verb: "get", Resource: "a"}, {Verb: "get", Namespace: "a"}}
	for range 2 {
		for _, user := range users {
			for _, question := range questions {
				if _, err := a.May(t.Context(), user, question); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if want := len(users) * len(questions); s.asked() != want {
		t.Errorf("got %d reviews, want %d", s.asked(), want)
	}
}

// TestFailedEvaluationsAreNotKept checks that the next call asks again if an authorizer failed.
func TestFailedEvaluationsAreNotKept(t *testing.T) {
	s := &server{answer: always(authorizationv1.SubjectAccessReviewStatus{EvaluationError: "the webhook did not answer"})}
	a := authorizer(t, s, access.Options{})
	for range 2 {
		if _, err := a.May(t.Context(), ada, updatePods); err != nil {
			t.Fatal(err)
		}
	}
	if s.asked() != 2 {
		t.Errorf("got %d reviews", s.asked())
	}
}

func TestReviewsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now, most int
		var mu sync.Mutex
		s := &server{answer: func(context.Context) (authorizationv1.SubjectAccessReviewStatus, error) {
			mu.Lock()
			now++
			most = max(most, now)
			mu.Unlock()
			<-time.After(time.Millisecond)
			mu.Lock()
			now--
			mu.Unlock()
			return authorizationv1.SubjectAccessReviewStatus{}, nil
		}}
		a := authorizer(t, s, access.Options{MaxReviews: 3})
		var all sync.WaitGroup
		for i := range 20 {
			all.Go(func() {
				if _, err := a.May(t.Context(), ada, authorizationv1.ResourceAttributes{Name: strings.Repeat("n", i)}); err != nil {
					t.Error(err)
				}
			})
		}
		if all.Wait(); most != 3 {
			t.Errorf("got %d reviews at a time", most)
		}
	})
}

func TestConcurrentQuestionsShareAReview(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{answer: func(ctx context.Context) (authorizationv1.SubjectAccessReviewStatus, error) {
			select {
			case <-time.After(2 * time.Second):
				return authorizationv1.SubjectAccessReviewStatus{Allowed: true}, nil
			case <-ctx.Done():
				return authorizationv1.SubjectAccessReviewStatus{}, ctx.Err()
			}
		}}
		a := authorizer(t, s, access.Options{})
		impatient, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		results := make(chan error)
		go func() { _, err := a.May(impatient, ada, updatePods); results <- err }()
		synctest.Wait()
		for range 10 {
			go func() { _, err := a.May(t.Context(), ada, updatePods); results <- err }()
		}
		if err := <-results; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the impatient call got %v", err)
		}
		for range 10 {
			if err := <-results; err != nil {
				t.Error(err)
			}
		}
		if s.asked() != 1 {
			t.Errorf("got %d reviews", s.asked())
		}
	})
}

// TestFailures checks that a failure gives no answer, is not kept, and has no API status, which would turn it into a
// denial.
func TestFailures(t *testing.T) {
	for name, answer := range map[string]func(context.Context) (authorizationv1.SubjectAccessReviewStatus, error){
		"forbidden": func(context.Context) (authorizationv1.SubjectAccessReviewStatus, error) {
			return authorizationv1.SubjectAccessReviewStatus{Allowed: true}, apierrors.NewForbidden(schema.GroupResource{Resource: "subjectaccessreviews"}, "", errors.New("no rule"))
		},
		"a panic": func(context.Context) (authorizationv1.SubjectAccessReviewStatus, error) { panic("oops") },
		"a review that hangs": func(ctx context.Context) (authorizationv1.SubjectAccessReviewStatus, error) {
			<-ctx.Done()
			return authorizationv1.SubjectAccessReviewStatus{}, ctx.Err()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &server{answer: answer}
				a := authorizer(t, s, access.Options{})
				for i := range 2 {
					got, err := a.May(t.Context(), ada, updatePods)
					var status apierrors.APIStatus
					if err == nil || got != (access.Answer{}) || errors.As(err, &status) || !strings.Contains(err.Error(), "permissions of ada") {
						t.Errorf("got %+v, %v", got, err)
					}
					if s.asked() != i+1 {
						t.Errorf("got %d reviews", s.asked())
					}
				}
			})
		})
	}
	a := authorizer(t, &server{}, access.Options{Namespace: "shop"})
	if _, err := a.May(t.Context(), ada, authorizationv1.ResourceAttributes{Namespace: "other"}); err == nil {
		t.Error("a question about another namespace got an answer")
	}
	if _, err := a.MayRequest(t.Context(), ada, authorizationv1.NonResourceAttributes{Path: "/x"}); err == nil {
		t.Error("a question about a path got an answer")
	}
	if _, err := access.New(access.Options{}); err == nil {
		t.Error("no client is not an error")
	}
}

// This example checks whether the user who changes an object may also update the Secrets of namespace shop.
func Example() {
	check := func(ctx context.Context, authorizer *access.Authorizer, user authenticationv1.UserInfo) error {
		answer, err := authorizer.May(ctx, user, authorizationv1.ResourceAttributes{Namespace: "shop", Verb: "update", Resource: "secrets"})
		switch {
		case err != nil:
			return err // a failure: the failurePolicy decides
		case !answer.Allowed:
			return fmt.Errorf("%s may not update secrets", user.Username) // a hook returns webhook.Denyf
		}
		return nil
	}
	client := &server{answer: always(authorizationv1.SubjectAccessReviewStatus{})} // a program uses clientset.AuthorizationV1()
	authorizer, err := access.New(access.Options{Client: client})
	if err != nil {
		panic(err)
	}
	fmt.Println(check(context.Background(), authorizer, authenticationv1.UserInfo{Username: "ada"}))
	fmt.Println(access.Rule().Resources, access.Rule().Verbs)
	// Output:
	// ada may not update secrets
	// [subjectaccessreviews] [create]
}
