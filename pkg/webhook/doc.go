// SPDX-License-Identifier: Apache-2.0

// Package webhook serves Kubernetes admission webhooks written as typed Go functions.
//
// [Mutating] and [Validating] return a hook for a registration, which is the Kubernetes API type
// itself, and a handler. The handler gets the object decoded into its own type and returns an error:
//
//   - nil admits. The changes of a mutating handler to the object become the patch.
//   - [Deny], [DenyInvalid], field errors, or any error with an API status of 400–499 deny. The
//     API server shows the denial to the user under every failurePolicy.
//   - Any other error is a failure to decide. So are a panic, a missed deadline and an object that
//     does not decode. The answer is an HTTP error with a metav1.Status, and the API server applies
//     the failurePolicy: Fail rejects, Ignore admits.
//
// A [Hook] is an http.Handler: mount it anywhere, on a controller-runtime manager with
// [Register], or run it in a [Server]. [Configurations] returns the objects that
// register the hooks with an API server.
//
// Package webhooktest calls hooks in tests as the API server does. Package adapt returns hooks for
// handlers that were written for controller-runtime.
//
// # Concurrency
//
// Hooks and servers are safe for concurrent use. A handler runs in many goroutines at
// once, one per call. A [Request] belongs to its call and is not safe for concurrent use. A handler
// that misses its deadline keeps running, but its answer is not used: watch the context.
package webhook
