// SPDX-License-Identifier: Apache-2.0

//go:build !race

package review

import (
	"encoding/json"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admitkit/admitkit/internal/wire"
	"github.com/admitkit/admitkit/pkg/patch"
)

// With the race detector a sync.Pool drops items at random, so these counts only hold without
// it.

// Documents are sub-slices of the body, so a larger document allocates no more.
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

// Decoding a review allocates the Request, the list of groups, and sometimes a piece of memory for strings.
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
		if err := wire.Decode(memory.req.target(), body, nil); err != nil {
			t.Fatal(err)
		}
	}); n > 0 {
		t.Errorf("wire.Decode: %v allocations, want none", n)
	}
}

// A response is appended to the given memory without an allocation, whatever its content.
func TestAppendAllocatesNothing(t *testing.T) {
	req := want(func(r *Request) { r.UID = "0df28fbd-5f5f-11e8-bc74-36e6bb280816" })
	warned := Allow()
	warned.Warn("look")
	denied := Deny(metav1.Status{Code: 422, Message: "spec.replicas: must be odd"})
	change := patch.Patch{{Op: patch.Add, Path: "/metadata/labels/team", Value: json.RawMessage(`"shop"`)}}
	dst := make([]byte, 0, 1000)
	for _, d := range []*Decision{Allow(), warned, denied} {
		if n := testing.AllocsPerRun(100, func() { dst = AppendMutating(dst[:0], &req, d, change) }); n > 0 {
			t.Errorf("%v allocations for %s", n, dst)
		}
	}
}
