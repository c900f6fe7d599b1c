// SPDX-License-Identifier: Apache-2.0

package replay_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/admitkit/admitkit/pkg/record"
	"github.com/admitkit/admitkit/pkg/replay"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// This example records a call, and replays it against a version of the hook that denies it.
func Example() {
	decide := func(err error) *webhook.Hook {
		return webhook.Validating(admissionregistrationv1.ValidatingWebhook{
			Name: "owners.example.com", Rules: webhook.Rules(webhook.OnCreate("", "v1", "pods")),
		}, func(context.Context, *webhook.Request[corev1.Pod]) error { return err })
	}
	dir, err := os.MkdirTemp("", "recordings-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	recorder, err := record.New(record.Options{Dir: dir})
	if err != nil {
		fmt.Println(err)
		return
	}
	request := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{
		"uid":"1","kind":{"version":"v1","kind":"Pod"},"resource":{"version":"v1","resource":"pods"},"name":"web","namespace":"shop","operation":"CREATE",
		"object":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web","namespace":"shop"}}}}`))
	request.Header.Set("Content-Type", "application/json")
	decide(nil).WithObserver(recorder).ServeHTTP(httptest.NewRecorder(), request)
	if err := recorder.Close(context.Background()); err != nil {
		fmt.Println(err)
		return
	}

	report, err := replay.Run(context.Background(), replay.Options{
		Files: []string{dir}, New: replay.Handler(decide(webhook.Deny("no owner"))),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(report.Verdict())
	fmt.Println(report.Changes[0].Cause)
	// Output:
	// 1 of 1 call changed: 1 decision.
	// allowed before, denied now: no owner
}
