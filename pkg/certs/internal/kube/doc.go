// SPDX-License-Identifier: Apache-2.0

// Package kube reads, writes and watches what a self-managed certificate source keeps in a cluster:
// the Secret of its CA, and the caBundle of webhook configurations, CustomResourceDefinitions and
// APIServices. It knows nothing of certificates.
package kube
