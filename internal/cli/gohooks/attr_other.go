// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package gohooks

import "os/exec"

func setAttributes(*exec.Cmd) {}

func ownGroup(*exec.Cmd) {}

func interrupt(cmd *exec.Cmd) error { return cmd.Process.Kill() }
