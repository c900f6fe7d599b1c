// SPDX-License-Identifier: Apache-2.0

package record

import (
	"compress/gzip"
	"io"
	"net/http"
	"os"
	"strconv"
	"testing"

	"github.com/admitkit/admitkit/internal/redact/planted"
	"github.com/admitkit/admitkit/pkg/review"
)

// TestPlantedSecrets records calls with 2,000 secrets in objects of many kinds, in users, patches, messages and
// warnings. None may be in the files, in no encoding.
func TestPlantedSecrets(t *testing.T) {
	p := planted.New(7)
	var calls []planted.Call
	for round := 0; len(p.Secrets) < 2_000; round++ {
		calls = append(calls, p.Calls(strconv.Itoa(round))...)
	}
	var next planted.Call
	r := start(t, Options{MaxBytesPerSecond: -1, MaxQueueBytes: -1, SecretPaths: []string{planted.SecretPath}})
	handler := r.Handler(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		_, _ = io.Copy(io.Discard, req.Body)
		_, _ = w.Write(next.Answer)
	}))
	for _, next = range calls {
		call(t, handler, "/policy", next.Request)
	}
	got := recorded(t, r)
	if len(got) != len(calls) {
		t.Fatalf("recorded %d calls of %d: %+v", len(got), len(calls), r.Stats())
	}
	t.Logf("%d secrets in %d calls", len(p.Secrets), len(calls))
	text := textOf(t, filesOf(t, r.files.dir))
	for i, secret := range p.Surviving(text) {
		if t.Errorf("a secret is in the file: %s", secret); i == 10 {
			break
		}
	}
	if n := len(planted.New(7).Surviving("x")); n != 0 {
		t.Errorf("%d secrets survive in x", n)
	}
	if n := len(p.Surviving(string(calls[0].Request))); n < 20 {
		t.Errorf("only %d secrets are in a request", n)
	}
	for i, c := range got {
		if _, err := review.Decode(c.Request); err != nil {
			t.Fatalf("call %d: %v", i, err)
		}
	}
}

// textOf returns the text of compressed files.
func textOf(t *testing.T, names []string) string {
	t.Helper()
	var text []byte
	for _, name := range names {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		z, err := gzip.NewReader(f)
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(z)
		if err != nil {
			t.Fatal(err)
		}
		_ = f.Close()
		text = append(text, data...)
	}
	return string(text)
}
