// SPDX-License-Identifier: Apache-2.0

// Package idempotence tests whether a mutating webhook is safe to call again. The API server calls a
// webhook again in the same request when a later webhook changed the object, at every update, and
// after a restore from a backup.
//
// The harness generates objects, calls the webhook as the API server does, and checks the laws L1 to
// L12: see [Law]. Between two calls it applies the patch, decodes and defaults the object like the API
// server, and edits it like another party. It reduces a case that breaks a law to a small one, and
// reports it with the calls, the offending operations and the usual fix.
//
//	func TestIdempotent(t *testing.T) {
//		idempotence.Check(t, idempotence.Handler(registration, newHandler), idempotence.Options{})
//	}
//
// Any http.Handler and any URL can be the subject: the webhook can be written in any language, with
// any framework. A law is checked only where the registration makes it apply, by its operations, kinds,
// review versions and side effects.
package idempotence
