// SPDX-License-Identifier: Apache-2.0

package chain

// limits tell what this run was done without, if it may matter.
func (r *run) limits() []string { return nil }
