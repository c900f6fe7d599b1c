// SPDX-License-Identifier: Apache-2.0

// Package idempotence tests whether a mutating webhook is safe to call again. The API server may call a webhook with
// its own result: in the same request if a later webhook changes the object, at every update, and after a restore from
// a backup.
//
// The harness generates objects, calls the webhook as the API server does, and checks 13 laws, L1 to L12: see [Law].
// Between two calls it applies the patch, decodes and defaults the object like the API server, and edits it like
// another party. If a law fails, the harness reduces the case to a small one. It reports this case with its calls, the
// offending patch operations and the usual fix.
//
//	func TestIdempotent(t *testing.T) {
//		idempotence.Check(t, idempotence.Hooks(newHooks), idempotence.Options{})
//	}
//
// Here newHooks returns hooks of package webhook. [Handler] and [URL] test any http.Handler and any URL: the webhook can be
// written in any language, with any framework. The registration decides which laws apply, by its operations, kinds,
// review versions and side effects.
package idempotence
