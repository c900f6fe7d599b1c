// SPDX-License-Identifier: Apache-2.0

package quickack

import "syscall"

func acknowledge(fd uintptr) {
	_ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_QUICKACK, 1)
}
