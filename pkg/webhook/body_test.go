// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"net/url"
	"testing"

	"github.com/admitkit/admitkit/pkg/webhook/internal/body"
)

// TestLargeMemoryIsNotKept checks that a buffers value does not keep memory of more than body.MaxSmallBytes after the
// call.
func TestLargeMemoryIsNotKept(t *testing.T) {
	for _, size := range []int{0, 10, body.MaxSmallBytes, body.MaxSmallBytes + 1, 1 << 20} {
		b := &buffers{body: make([]byte, 0, 5), answer: make([]byte, size)}
		b.hold(make([]byte, 0, size))
		b.release()
		fits := size <= body.MaxSmallBytes
		if want := map[bool]int{true: size, false: 5}[fits]; cap(b.body) != want || b.large != nil {
			t.Errorf("a body of %d bytes: memory of %d is kept, %d of large", size, cap(b.body), cap(b.large))
		}
		if fits != (b.answer != nil) {
			t.Errorf("an answer of %d bytes: kept %t", size, b.answer != nil)
		}
	}
}

func FuzzTimeoutOf(f *testing.F) {
	for _, query := range []string{
		"", "timeout=5s", "timeout=5s&timeout=6s", "a=b&timeout=5s", "timeout", "timeout=", "&&timeout=1s&", "timeout=1s=2s", "=timeout", "Timeout=1s",
		"timeout=1%73", "tim%65out=1s", "timeout=1+s", "timeout=%zz", "a;timeout=5s", "timeout=5s;a", "timeouts=1s", "xtimeout=1s&timeout=2s", "a=timeout=5s",
	} {
		f.Add(query)
	}
	f.Fuzz(func(t *testing.T, query string) {
		u := &url.URL{RawQuery: query}
		if got, want := timeoutOf(u), u.Query().Get("timeout"); got != want {
			t.Errorf("%q: got %q, want %q", query, got, want)
		}
	})
}

func TestIsJSON(t *testing.T) {
	for _, in := range []struct {
		contentType string
		want        bool
	}{
		{"application/json", true}, {"application/json; charset=utf-8", true}, {"Application/JSON", true}, {"application/json;", true},
		{"", false}, {"application/jsonx", false}, {"text/json", false}, {"application/json, text/plain", false}, {"application", false},
	} {
		if got := isJSON(in.contentType); got != in.want {
			t.Errorf("%q: got %t", in.contentType, got)
		}
	}
}
