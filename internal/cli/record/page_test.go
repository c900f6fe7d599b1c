// SPDX-License-Identifier: Apache-2.0

package record

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// thePod is the review of a Pod that has a password in three places.
const thePod = `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"0a8fcd5e-7c2f-4d7c-9d3b-6a5a4b0f5a10","kind":{"group":"","version":"v1","kind":"Pod"},` +
	`"resource":{"group":"","version":"v1","resource":"pods"},"name":"shop","namespace":"default","operation":"CREATE","userInfo":{"username":"ada","groups":["developers"]},` +
	`"object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"shop","annotations":{"example.com/note":"login shop / hunter2"}},` +
	`"spec":{"containers":[{"name":"app","image":"shop:latest","args":["--db=postgres://shop:hunter2@db/shop","--port=8080"],` +
	`"env":[{"name":"DB_PASSWORD","value":"hunter2"},{"name":"LOG_LEVEL","value":"debug"}]}]}},"oldObject":null,"dryRun":false}}`

const theAnswer = `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":"0a8fcd5e-7c2f-4d7c-9d3b-6a5a4b0f5a10","allowed":false,` +
	`"status":{"code":403,"message":"DB_PASSWORD is set to \"hunter2\": use a secretKeyRef"}}}`

// theKey makes the pseudonyms of the page.
const theKey = "6b1f0a5c8e2d4973b6a1c0de59f8e7d26b1f0a5c8e2d4973b6a1c0de59f8e7d2"

// TestPageShowsARecording requires that docs/recording.md shows what the command prints and records. To see the right
// text, run the test after a change.
func TestPageShowsARecording(t *testing.T) {
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			_, _ = io.Copy(io.Discard, r.Body)
			_, _ = io.WriteString(w, theAnswer)
		}
	}))
	defer hook.Close()
	o := options(hook.URL)
	o.Record.KeyFile = filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(o.Record.KeyFile, []byte(theKey), 0o600); err != nil {
		t.Fatal(err)
	}
	r := run(t, o)
	post(t, http.DefaultClient, r.url+"/validate?timeout=10s", thePod)
	http.DefaultClient.CloseIdleConnections()
	if calls := r.stop(); len(calls) != 1 {
		t.Fatalf("got %d calls", len(calls))
	}
	page, err := os.ReadFile("../../../docs/recording.md")
	if err != nil {
		t.Fatal(err)
	}
	notes := strings.NewReplacer(hook.URL, "https://127.0.0.1:8443", r.url, "https://127.0.0.1:9443", r.dir, "recordings").Replace(r.out.String())
	_, notes, _ = strings.Cut(notes, "\n") // that it serves HTTP
	for _, want := range []string{notes, shown(t, r.dir)} {
		if !strings.Contains(masked(string(page)), masked(want)) {
			t.Errorf("the page does not show\n%s", want)
		}
	}
}

var varying = regexp.MustCompile(`("time": ")[^"]*|("durationSeconds": )[0-9.e-]+`)

// masked replaces what differs between runs.
func masked(text string) string { return varying.ReplaceAllString(text, "$1$2X") }

// shown returns the parts of the only line of a recording that the page shows, as jq prints them.
func shown(t *testing.T, dir string) string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.gz"))
	if err != nil || len(names) != 1 {
		t.Fatalf("%q, %v", names, err)
	}
	f, err := os.Open(names[0])
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var line struct {
		Request struct {
			Request struct{ Object json.RawMessage }
		}
		Answer struct {
			Response struct{ Status json.RawMessage }
		}
	}
	data, err := io.ReadAll(z)
	if err == nil {
		err = json.Unmarshal(data, &line)
	}
	if err != nil {
		t.Fatal(err)
	}
	// The header is everything before the request.
	header, _, _ := bytes.Cut(data, []byte(`,"request":`))
	var out bytes.Buffer
	for _, part := range [][]byte{append(header, '}'), line.Request.Request.Object, line.Answer.Response.Status} {
		if err := json.Indent(&out, part, "", "  "); err != nil {
			t.Fatal(err)
		}
		out.WriteByte('\n')
	}
	return out.String()
}
