// SPDX-License-Identifier: Apache-2.0

// Package webhook serves Kubernetes admission webhooks written as typed Go functions.
//
// A hook is made by [Mutating] or [Validating] from a registration, which is the Kubernetes
// API type itself, and a handler. The handler gets the object decoded into its own type and
// returns an error:
//
//   - nil admits; what a mutating handler changed in the object becomes the patch.
//   - A denial refuses: [Deny], [DenyInvalid], field errors, or any error with an API status
//     of 400–499. The API server shows it to the user, whatever the failurePolicy.
//   - Anything else is a failure to decide, as are a panic, a missed deadline and an object
//     that does not decode. It is answered with an HTTP error and a metav1.Status, so that
//     the API server applies the failurePolicy: Fail rejects, Ignore admits.
//
// A [Hook] is an http.Handler: mount it anywhere, on a controller-runtime manager with
// [Register], or run it in a [Server]. [Configurations] gives the objects that tell the API
// server about the hooks.
//
// Package webhooktest, beside this one, calls hooks in tests as the API server does. Package
// adapt makes hooks of handlers written for controller-runtime.
//
// # Concurrency
//
// Hooks and servers are safe for concurrent use. A handler is called in many goroutines at
// once, one per call; a [Request] belongs to its call and is not safe for concurrent use. A
// handler that outlives its deadline keeps running, but its answer is not used: watch the
// context.
package webhook
