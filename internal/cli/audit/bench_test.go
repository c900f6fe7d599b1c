// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bytes"
	"fmt"
	"testing"
)

// BenchmarkRun reads logs in which most requests are reads, so that few requests called webhooks, as in a real cluster.
// The MB/s shows whether a change makes audit slower.
func BenchmarkRun(b *testing.B) {
	for _, c := range []struct {
		name  string
		every int // one in this many requests called webhooks
	}{{"one in 100 with webhooks", 100}, {"one in 10", 10}, {"all", 1}} {
		b.Run(c.name, func(b *testing.B) {
			var log bytes.Buffer
			for i := range 5000 {
				if i%c.every == 0 {
					log.WriteString(event{ID: fmt.Sprint("w", i), Name: fmt.Sprint("o", i%100), Calls: []recordedCall{
						{Hook: "a.example.com", Mutated: true, Patch: `[{"op":"add","path":"/metadata/labels/x","value":"y"}]`}, {Hook: "b.example.com"},
					}}.line())
				} else {
					log.WriteString(event{ID: fmt.Sprint("r", i), Verb: "get", Code: 200}.line())
				}
			}
			b.SetBytes(int64(log.Len()))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Run(b.Context(), []Source{textSource("log", bytes.NewReader(log.Bytes()))}, defaults(), noProgress); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
