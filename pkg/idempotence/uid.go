// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"crypto/rand"
	"fmt"
	"regexp"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/types"
)

// A webhook may remember the uid of a request forever. So no uid may appear twice, in this process or in others that call the
// same server.
var (
	lastUID   atomic.Uint64
	uidPrefix = func() string {
		var b [4]byte
		_, _ = rand.Read(b[:]) // which never fails
		return fmt.Sprintf("%x-0000-4000-8000-", b)
	}()
	anyUID = regexp.MustCompile(uidPrefix + "[0-9a-f]{12}")
)

const uidLength = len("00000000-0000-4000-8000-000000000000")

func newUID() types.UID { return types.UID(fmt.Sprintf("%s%012x", uidPrefix, lastUID.Add(1))) }

// Placeholders for uids in a report, so that two reports of the same run are equal.
const (
	thisUID  = "00000000-0000-4000-8000-000000000001" // of the request that is answered
	otherUID = "00000000-0000-4000-8000-000000000000"
)

// withoutUIDs returns a copy of a text with placeholders for uids.
func withoutUIDs(text []byte, uid types.UID) []byte {
	return anyUID.ReplaceAllFunc(text, func(found []byte) []byte {
		if string(found) == string(uid) {
			return []byte(thisUID)
		}
		return []byte(otherUID)
	})
}

// reported returns the part of a response that a report keeps.
func reported(response []byte, uid types.UID) []byte {
	return clipped(withoutUIDs(response[:min(len(response), mostResponse+uidLength)], uid))
}
