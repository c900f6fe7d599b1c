// SPDX-License-Identifier: Apache-2.0

package session

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"regexp"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/types"
)

// A webhook may remember the uid of a request forever. So no uid may appear twice, in this process or in others that
// call the same server.
var (
	lastUID atomic.Uint64
	// UIDPrefix begins each uid of this process.
	UIDPrefix = func() string {
		var b [4]byte
		_, _ = rand.Read(b[:]) // crypto/rand never fails
		return fmt.Sprintf("%x-0000-4000-8000-", b)
	}()
	anyUID = regexp.MustCompile(UIDPrefix + "[0-9a-f]{12}")
)

const uidLength = len("00000000-0000-4000-8000-000000000000")

// NewUID returns the uid of a new request.
func NewUID() types.UID { return types.UID(fmt.Sprintf("%s%012x", UIDPrefix, lastUID.Add(1))) }

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

// reported returns the part of a response that a report shows: its start, with placeholders for UIDs.
func reported(response []byte, uid types.UID) []byte {
	return clipped(withoutUIDs(response[:min(len(response), mostResponse+uidLength)], uid))
}

// mostResponse bounds the bytes of a response in a report.
const mostResponse = 64 << 10

// clipped returns a copy of at most mostResponse bytes, so that the rest can be freed.
func clipped(b []byte) []byte { return bytes.Clone(b[:min(len(b), mostResponse)]) }
