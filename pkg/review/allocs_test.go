// SPDX-License-Identifier: Apache-2.0

//go:build !race

package review

import "testing"

// With the race detector a sync.Pool loses things at random, so these counts are for builds
// without it.

// Documents are handed out in place, so a larger one costs no more memory.
func TestDecodeAllocatesNothingForDocuments(t *testing.T) {
	allocs := func(containers int) float64 {
		body := benchmarkReview(t, containers)
		return testing.AllocsPerRun(50, func() {
			if _, err := Decode(body); err != nil {
				t.Fatal(err)
			}
		})
	}
	if small, large := allocs(2), allocs(375); large > small {
		t.Errorf("got %v allocations for 200 KB, %v for 2 KB", large, small)
	}
}

// A review costs its Request, its list of groups, and now and then a piece of memory for texts.
func TestDecodeAllocations(t *testing.T) {
	body := benchmarkReview(t, 2)
	if n := testing.AllocsPerRun(100, func() {
		if _, err := Decode(body); err != nil {
			t.Fatal(err)
		}
	}); n > 2 {
		t.Errorf("Decode: %v allocations, want 2", n)
	}
	var memory struct {
		req    Request
		groups [4]string
	}
	if n := testing.AllocsPerRun(100, func() {
		memory.req = Request{}
		memory.req.UserInfo.Groups = memory.groups[:0]
		if err := DecodeInto(&memory.req, body, nil); err != nil {
			t.Fatal(err)
		}
	}); n > 0 {
		t.Errorf("DecodeInto: %v allocations, want none", n)
	}
}
