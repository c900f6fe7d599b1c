// SPDX-License-Identifier: Apache-2.0

// Package install registers hooks with a cluster from code.
package install
