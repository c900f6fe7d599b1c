// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestFilesWhileTheCAsAreWritten writes a CA file with two CAs in two steps. After the first step the file is valid,
// but incomplete. The source must keep the previous CAs until the file is complete.
func TestFilesWhileTheCAsAreWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMount(t)
		one, two := newPair(t, 0, 1000*time.Hour), newPair(t, 0, 1000*time.Hour)
		m.put(one)
		m.start("ca.crt")
		both := append(bytes.Clone(two.ca), one.ca...)
		<-time.After(testInterval - 50*time.Millisecond)
		m.write("ca.crt", two.ca)
		<-time.After(100 * time.Millisecond)
		synctest.Wait()
		m.want(one, true, "")
		m.write("ca.crt", both)
		m.tick()
		m.want(one, true, "")
		if !bytes.Contains(m.source.Bundle(), bytes.TrimSpace(one.ca)) || !bytes.Contains(m.source.Bundle(), bytes.TrimSpace(two.ca)) {
			t.Error("the bundle does not have both CAs")
		}
		for _, line := range m.lines() {
			if strings.Contains(line, "attention") {
				t.Errorf("logged %s", line)
			}
		}
		m.stop()
		if err := <-m.stopped; err != nil {
			t.Error(err)
		}
	})
}
