// SPDX-License-Identifier: Apache-2.0

package external_test

import (
	"context"
	"fmt"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/admitkit/admitkit/pkg/external"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// This example creates a hook that asks a scanner about each image. If the scanner gives no answer, the hook fails and the
// failurePolicy decides.
func Example() {
	scanner, err := external.New(external.Options[string, bool]{
		Name: "scanner",
		Send: func(_ context.Context, image string) (bool, error) { // a program sends a request with this context
			return image != "shop:v1", nil
		},
		OnFailure: external.Fail[string, bool],
		KeepFor: func(clean bool) time.Duration {
			if clean {
				return 10 * time.Minute
			}
			return 30 * time.Second
		},
	})
	if err != nil {
		panic(err)
	}
	hook := images(scanner)
	clean, err := scanner.Ask(context.Background(), "shop:v2")
	fmt.Println(hook.Name(), clean, err)
	// Output:
	// images.example.com true <nil>
}

// images returns a hook that denies Pods with vulnerable images.
func images(scanner *external.Service[string, bool]) *webhook.Hook {
	return webhook.Validating(admissionregistrationv1.ValidatingWebhook{
		Name: "images.example.com", Rules: webhook.Rules(webhook.OnCreate("", "v1", "pods")),
	}, func(ctx context.Context, req *webhook.Request[corev1.Pod]) error {
		for _, c := range req.Object.Spec.Containers {
			switch clean, err := scanner.Ask(ctx, c.Image); {
			case err != nil:
				return err // a failure: the failurePolicy decides
			case !clean:
				return webhook.Denyf("the image %s has known vulnerabilities", c.Image)
			}
		}
		return nil
	})
}
