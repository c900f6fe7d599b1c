// SPDX-License-Identifier: Apache-2.0

package clientauth

import (
	"bytes"
	"encoding/base64"
	"net/http"
	"strings"
	"testing"

	"github.com/admitkit/admitkit/internal/devcert"
	"github.com/admitkit/admitkit/internal/reload"
)

// presented returns a request with this Authorization header.
func presented(authorization string) *http.Request {
	return &http.Request{Header: http.Header{"Authorization": {authorization}}}
}

// inFile returns a reload.Files that holds value, as if it had been read from a file.
func inFile[T any](t *testing.T, value T) *reload.Files[T] {
	files := reload.New(reload.Options[T]{Parse: func([][]byte) (T, error) { return value, nil }})
	if err := files.Load(); err != nil {
		t.Fatal(err)
	}
	return files
}

// FuzzTokenFile checks that a valid file accepts each of its lines exactly as written, and no
// similar text.
func FuzzTokenFile(f *testing.F) {
	for _, seed := range []string{"", "a", "# a\nb\r\n\nc==", "# a\nabcdefgh-12345678\r\n\nABCDEFGH-12345678==\n", "a b", "token,user,uid", "\ufeffa", "a\x00", "é", "Bearer a", "\u00a0a"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		tokens, err := parseTokens(content)
		checkParsed(t, content, tokens, err)
		if err != nil {
			return
		}
		admittedRequest := bearer(inFile(t, tokens))
		if admittedRequest(presented("Bearer ")) == nil || admittedRequest(presented("Bearer "+string(content)+"\n")) == nil && len(tokens) > 1 {
			t.Error("something else passes")
		}
		for line := range strings.Lines(strings.TrimPrefix(string(content), "\ufeff")) {
			if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
				continue
			}
			if err := admittedRequest(presented("Bearer " + line)); err != nil {
				t.Errorf("%q does not pass: %v", line, err)
			}
			if admittedRequest(presented("Bearer "+line+"#")) == nil || admittedRequest(presented("Basic "+line)) == nil {
				t.Errorf("something near %q passes", line)
			}
		}
	})
}

// FuzzBasicFile checks the same as FuzzTokenFile for files of user names and passwords.
func FuzzBasicFile(f *testing.F) {
	for _, seed := range []string{"", "a:b", "a:b:c\n#x\na:d ", "a:", ":b", "ab", "a:$2y$05$x", "\xff:b", "a:\x7f", "ä:ö"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		pairs, err := parseBasic(content)
		checkParsed(t, content, pairs, err)
		if err != nil {
			return
		}
		admittedRequest := basic(inFile(t, pairs))
		for line := range strings.Lines(strings.TrimPrefix(string(content), "\ufeff")) {
			if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
				continue
			}
			if err := admittedRequest(presented("Basic " + base64.StdEncoding.EncodeToString([]byte(line)))); err != nil {
				t.Errorf("%q does not pass: %v", line, err)
			}
			user, _, _ := strings.Cut(line, ":")
			if admittedRequest(presented("Basic "+base64.StdEncoding.EncodeToString([]byte(user+":")))) == nil || admittedRequest(presented("Basic "+line)) == nil {
				t.Errorf("something near %q passes", line)
			}
		}
	})
}

func checkParsed(t *testing.T, content []byte, found secrets, err error) {
	t.Helper()
	if (err == nil) != (len(found) > 0) {
		t.Errorf("found %d, and %v", len(found), err)
	}
	for line := range bytes.Lines(content) {
		if line = bytes.TrimSpace(line); err != nil && len(line) > 12 && strings.Contains(err.Error(), string(line)) && line[0] != '#' {
			t.Errorf("the error quotes the file: %v", err)
		}
	}
}

// FuzzCAFile checks that parseCAs accepts only files with at least one certificate and without a private key.
func FuzzCAFile(f *testing.F) {
	f.Add([]byte(""))
	f.Add([]byte("-----BEGIN CERTIFICATE-----\naaaa\n-----END CERTIFICATE-----\n"))
	f.Add([]byte("-----BEGIN PRIVATE KEY-----\naaaa\n-----END PRIVATE KEY-----\n"))
	f.Add(aCertificate(f))
	f.Add(append(aCertificate(f), aCertificate(f)[:99]...))
	f.Fuzz(func(t *testing.T, content []byte) {
		pool, err := parseCAs(content)
		if (pool == nil) != (err != nil) {
			t.Fatalf("got %v, and %v", pool, err)
		}
		if err == nil && (!bytes.Contains(content, []byte("-----BEGIN CERTIFICATE-----")) || bytes.Contains(content, []byte("-----BEGIN PRIVATE KEY"))) {
			t.Errorf("taken: %q", content)
		}
	})
}

func aCertificate(f *testing.F) []byte {
	ca, err := devcert.NewCA()
	if err != nil {
		f.Fatal(err)
	}
	return ca.Bundle
}
