// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"strings"
	"testing"
)

func TestCheckToken(t *testing.T) {
	for token, want := range map[string]string{
		"aZ0-._~+/==":                       "",
		strings.Repeat("x", MaxBytes):       "",
		strings.Repeat("x", MaxBytes+1):     "is longer than 8192 bytes",
		"":                                  "is not a bearer token",
		"two tokens":                        "is not a bearer token",
		"token\n":                           "is not a bearer token",
		"täken":                             "is not a bearer token",
		"token,user,1":                      "is not a bearer token",
		"\x00":                              "is not a bearer token",
		"\xff":                              "is not a bearer token",
		`"quoted"`:                          "is not a bearer token",
		strings.Repeat("x", MaxBytes) + "#": "is not a bearer token",
	} {
		check(t, token, CheckToken(token), want)
	}
}

func TestCheckAcceptedToken(t *testing.T) {
	for token, want := range map[string]string{
		"":                              "is not a bearer token",
		"x":                             "is shorter than 16 bytes: make a random one",
		strings.Repeat("x", 15):         "is shorter than 16 bytes",
		strings.Repeat("x", 16):         "",
		"aZ0-._~+/aZ0-._~+/==":          "",
		strings.Repeat("x", MaxBytes+1): "is longer than 8192 bytes",
	} {
		check(t, token, CheckAcceptedToken(token), want)
	}
}

func TestCheckPair(t *testing.T) {
	for pair, want := range map[[2]string]string{
		{"ada", "love:lace and #more"}:       "",
		{"gräce", "höpper"}:                  "",
		{"a", strings.Repeat("x", MaxBytes)}: "is longer than",
		{"", "b"}:                            "one of them is empty",
		{"a", ""}:                            "one of them is empty",
		{"a:b", "c"}:                         "has a colon in the user name",
		{"a", "b\n"}:                         "has control characters",
		{"a\t", "b"}:                         "has control characters",
		{"a", "\xff"}:                        "is not UTF-8",
		{" a", "b"}:                          "begins or ends with a space",
		{"a", "b\u00a0"}:                     "begins or ends with a space",
		{"#a", "b"}:                          "begins with #",
		{"\ufeffa", "b"}:                     "begins with # or a byte order mark",
		{"a", "$2y$05$x"}:                    "contains a hash",
		{"a", "{SHA}x"}:                      "contains a hash",
	} {
		check(t, strings.Join(pair[:], ":"), CheckPair(pair[0], pair[1]), want)
	}
}

func check(t *testing.T, of string, err error, want string) {
	t.Helper()
	if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
		t.Errorf("%.40q: got %v, want %q", of, err, want)
	}
}
