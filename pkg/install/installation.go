// SPDX-License-Identifier: Apache-2.0

package install

import (
	"github.com/go-logr/logr"
)

// An installation is what the parts of an Installer share: what to install, and in which cluster.
type installation struct {
	o       Options
	wanted  []wanted // one per sort
	cluster cluster
	logger  logr.Logger
	status  progress
}
