// SPDX-License-Identifier: Apache-2.0

// Package idempotence finds out whether a mutating webhook is safe to call again, which the API
// server does: in the same request when a later webhook changed something, at every update,
// after a restore from a backup.
//
// It calls the webhook as the API server would, with objects it makes, and checks the laws L1 to
// L12: see [Law]. Between two calls it applies the patch, decodes and defaults as the API
// server does, and lets others edit the object. What breaks a law is made as small as it can be
// and reported with the calls, the offending operations and the usual fix.
//
//	func TestIdempotent(t *testing.T) {
//		idempotence.Check(t, idempotence.Handler(registration, newHandler))
//	}
//
// Any http.Handler and any URL can be the subject: the webhook may be made with any framework, in
// any language. A law is checked only where the registration makes it apply: the operations,
// kinds, review versions and side effects that it declares.
package idempotence
