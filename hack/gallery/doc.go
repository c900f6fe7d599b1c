// SPDX-License-Identifier: Apache-2.0

// Package gallery compares the hooks of examples/gallery with the originals: the admission controllers of Kubernetes
// that the hooks reimplement. It contains only tests, which `make gallery` runs.
package gallery
