// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package build

import "os/exec"

func useProcessGroup(*exec.Cmd) {}
