// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/admitkit/admitkit/internal/jsonraw"
)

// fuzzPlaces are objects with a place for a secret, as JSON text: %[1]s is the secret, %[2]s its base64, and %[3]s
// an object that has the secret, as JSON in JSON.
var fuzzPlaces = []string{
	`{"kind":"Secret","apiVersion":"v1","data":{"a":%[2]s}}`,
	`{"kind":"Secret","apiVersion":"v1","stringData":{"a":%[1]s}}`,
	`{"apiVersion":"v1","data":{"a":%[1]s},"kind":"ConfigMap"}`,
	`{"spec":{"containers":[{"env":[{"name":"PASSWORD","value":%[1]s}]}]}}`,
	`{"spec":{"containers":[{"env":[{"value":%[1]s,"name":"X"}]}]}}`,
	`{"spec":{"clientSecret":%[1]s}}`,
	`{"spec":{"args":["--token",%[1]s]}}`,
	`{"spec":{"deep":[{"pin":%[1]s}]}}`,
	`{"metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":%[3]s}}}`,
}

// FuzzCall puts any secret, with any text around it, in each of the places. The redacted documents must be JSON, must
// depend only on the arguments, and must not contain the secret.
func FuzzCall(f *testing.F) {
	for i := range fuzzPlaces {
		f.Add("hunter2", uint8(i), "the value hunter2 is bad", `{"op":"add"}`)
	}
	f.Add("correct horse battery staple", uint8(3), `password: "correct horse battery staple"`, `[{"op":"add","path":"/spec/args/-","value":"x"}]`)
	f.Add("-----BEGIN PRIVATE KEY-----\nMIIEvQIBADAN\n-----END PRIVATE KEY-----\n", uint8(1), "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhZGEifQ.c2ln", "null")
	f.Add(`{"auths":{"r.example":{"password":"hunter2"}}}`, uint8(0), "https://ada:hunter2@git.example", `{"a":["$(B)"]}`)
	f.Add("$(POD_IP):8080", uint8(4), "Bearer abcdefgh", `{"request":{"object":{"kind":"Secret"}}}`)
	r, err := New(testKey(), []string{"spec.deep[*].pin"})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, secret string, place uint8, text, other string) {
		object := fuzzObject(secret, place)
		request := fmt.Appendf(nil, `{"kind":"AdmissionReview","request":{"uid":"u","object":%s,"oldObject":%s,"options":{"text":%s}}}`,
			object, orNull(other), quote(text))
		answer := fmt.Appendf(nil, `{"response":{"uid":"u","status":{"message":%s},"warnings":[%s],"patch":%s}}`,
			quote(text), quote(secret), quote(base64.StdEncoding.EncodeToString([]byte(other))))
		req, ans, err := r.Call(request, answer)
		if err != nil {
			t.Fatalf("%v: %s", err, request)
		}
		for _, document := range [][]byte{req, ans} {
			if c := jsonraw.NewCursor(document); c.Skip() != nil || c.End() != nil || !utf8.Valid(document) {
				t.Fatalf("not JSON: %s", document)
			}
		}
		if again, more, err := r.Call(request, answer); err != nil || !bytes.Equal(again, req) || !bytes.Equal(more, ans) {
			t.Fatalf("the result differs: %v\n%s\n%s", err, req, again)
		}
		if again, err := r.Answer(req, answer); err != nil || !json.Valid(again) {
			t.Fatalf("the redacted request cannot be used: %v: %s", err, req)
		}
		// A copy that can be the same word by chance stays in the request.
		if isFound(secret, place) && (distinctive(secret) || !strings.Contains(text+other, secret)) && bytes.Contains(req, quote(secret)) {
			t.Errorf("the secret %q is in the request %s", secret, req)
		}
		if isFound(secret, place) && distinctive(secret) && !bytes.Contains(fuzzObject("", place), []byte(secret)) && !strings.Contains(text+other, secret) &&
			slices.ContainsFunc(textsIn(t, ans), func(text string) bool { return strings.Contains(text, secret) }) {
			t.Errorf("the secret %q is in the answer %s", secret, ans)
		}
	})
}

// textsIn returns the strings, names and numbers in a document. The punctuation of JSON is no part of them.
func textsIn(t *testing.T, document []byte) (all []string) {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(document))
	decoder.UseNumber()
	for {
		token, err := decoder.Token()
		switch {
		case errors.Is(err, io.EOF):
			return all
		case err != nil:
			t.Fatal(err)
		}
		if _, punctuation := token.(json.Delim); !punctuation {
			all = append(all, fmt.Sprint(token))
		}
	}
}

func fuzzObject(secret string, place uint8) []byte {
	inner := fmt.Sprintf(`{"kind":"Secret","stringData":{"a":%s}}`, quote(secret))
	return fmt.Appendf(nil, fuzzPlaces[int(place)%len(fuzzPlaces)], quote(secret), quote(base64.StdEncoding.EncodeToString([]byte(secret))), quote(inner))
}

func quote(text string) []byte {
	quoted, _ := json.Marshal(text) // a string always marshals
	return quoted
}

func orNull(text string) string {
	c := jsonraw.NewCursor([]byte(text))
	if c.Skip() != nil || c.End() != nil {
		return "null"
	}
	return text
}

// isFound reports whether the secret of a place is always replaced: it is valid text, and neither harmless nor a
// reference nor a flag.
func isFound(secret string, place uint8) bool {
	args := strings.Contains(fuzzPlaces[int(place)%len(fuzzPlaces)], `"args"`)
	return len(secret) >= 6 && utf8.ValidString(secret) && strings.TrimSpace(secret) == secret && !harmless(secret) && !strings.Contains(secret, "$(") &&
		!(args && strings.HasPrefix(secret, "-"))
}
