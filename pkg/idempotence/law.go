// SPDX-License-Identifier: Apache-2.0

package idempotence

// A Law is a condition that every webhook must meet to be safe to call again. F(x) is one whole call with the object x:
// encode x, call the webhook, verify the response, apply the patch, decode and default the result. g is an edit of the
// object by another party between two calls. ≡ is equality up to the order of list elements.
type Law string

// The laws.
const (
	// L1: F(F(x)) = F(x), the second patch is empty, and F(x) is valid.
	L1 Law = "L1"
	// L2: if the webhook allows x, it also allows F(x). No valid x causes a panic or a server error.
	L2 Law = "L2"
	// L3: the same request gives the same object, on every instance and after any other requests.
	L3 Law = "L3"
	// L4a: for every g, y = F(g(F(x))) is allowed and valid, F(y) = y, and y has no more containers,
	// volumes and equal list elements than F(F(g(x))).
	L4a Law = "L4a"
	// L4b: for every g that only adds, F(g(F(x))) ≡ F(F(g(x))).
	L4b Law = "L4b"
	// L5: x may contain a part of F(x), or something similar: the result is valid and complete, and
	// the webhook neither removes values of the user nor treats them as its own.
	L5 Law = "L5"
	// L6: on UPDATE, immutable fields of older objects are left alone, deletions can finish,
	// applying the same manifest again changes nothing, and a manifest that replaces the object gets
	// the parts of the webhook again.
	L6 Law = "L6"
	// L7: a dry run gives the same answer, writes nothing, and changes no later answer.
	L7 Law = "L7"
	// L8: v1 and v1beta1 reviews, and other encodings of the object, get the same decision in a
	// correct envelope.
	L8 Law = "L8"
	// L9: a field that the webhook does not know survives, on the element that had it.
	L9 Law = "L9"
	// L10: the patch applies to the bytes that were sent and touches only what has to change.
	L10 Law = "L10"
	// L11: alternating with another webhook ends in the same state, whichever begins.
	L11 Law = "L11"
	// L12: alternating with another webhook reaches a state that neither changes.
	L12 Law = "L12"
)

// Laws lists all laws in order.
var Laws = []Law{L1, L2, L3, L4a, L4b, L5, L6, L7, L8, L9, L10, L11, L12}
