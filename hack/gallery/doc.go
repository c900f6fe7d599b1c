// SPDX-License-Identifier: Apache-2.0

// Package gallery compares the hooks of examples/gallery with the admission controllers of Kubernetes that they are
// equal to. It has only a test, see `make gallery`.
package gallery
