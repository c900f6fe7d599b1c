// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
)

func testKey() Key { return Key{[]byte("0123456789abcdef0123456789abcdef")} }

// TestShapes requires that a pseudonym has the shape of the secret, differs from it, and depends on the key.
func TestShapes(t *testing.T) {
	label := func(s string) bool { return len(validation.IsValidLabelValue(s)) == 0 }
	dns := func(s string) bool { return len(validation.IsDNS1123Label(s)) == 0 }
	quantity := func(s string) bool { _, err := resource.ParseQuantity(s); return err == nil }
	number := func(s string) bool { return json.Valid([]byte(s)) }
	prefix := func(s string) bool { p, err := netip.ParsePrefix(s); return err == nil && p == p.Masked() }
	for secret, valid := range map[string]func(string) bool{
		"hunter2":                              label,
		"Tr0ub4dor&3":                          label,
		"a":                                    label,
		"my-secret-value":                      dns,
		"correct horse":                        dns,
		"8443":                                 number,
		"65535":                                func(s string) bool { return number(s) && len(s) == 5 && s < "65536" },
		"512Mi":                                quantity,
		"1.5":                                  quantity,
		"3e8":                                  quantity,
		"250m":                                 quantity,
		"45%":                                  func(s string) bool { return strings.HasSuffix(s, "%") && len(s) == 3 },
		"1h30m":                                func(s string) bool { _, err := time.ParseDuration(s); return err == nil },
		"192.0.2.7":                            func(s string) bool { _, err := netip.ParseAddr(s); return err == nil },
		"2001:db8::7":                          func(s string) bool { _, err := netip.ParseAddr(s); return err == nil },
		"192.0.2.0/24":                         prefix,
		"2001:db8::/64":                        prefix,
		"192.0.2.7:443":                        func(s string) bool { _, err := netip.ParseAddrPort(s); return err == nil },
		"ops@shop.example":                     func(s string) bool { return email().MatchString(s) },
		"2026-03-14T15:09:26Z":                 func(s string) bool { _, err := time.Parse(time.RFC3339, s); return err == nil },
		"8b0c6d3e-4a57-4d0c-9d0e-2f1f7c1b9a55": uuid().MatchString,
		"9f86d081884c7d659a2feaa0c55ad015":     func(s string) bool { return strings.Trim(s, hexDigits) == "" && len(s) == 32 },
		"postgres://shop:pw@db.example:5432/shop": func(s string) bool {
			u, err := url.Parse(s)
			return err == nil && u.Scheme == "postgres" && u.Host != ""
		},
		`{"auths":{"r.example":{"auth":"dTpw"}}}`:                        func(s string) bool { return json.Unmarshal([]byte(s), &map[string]any{}) == nil },
		`["one-secret","another"]`:                                       func(s string) bool { return json.Unmarshal([]byte(s), &[]string{}) == nil },
		"wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY12":                       func(s string) bool { _, err := base64.StdEncoding.DecodeString(s); return err == nil },
		"-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----\n": func(s string) bool { b, _ := pem.Decode([]byte(s)); return b != nil && b.Type == "REDACTED" },
	} {
		got := testKey().pseudonym(secret)
		if !valid(got) {
			t.Errorf("%q becomes %q, which has not the shape", secret, got)
		}
		if got == secret || got != testKey().pseudonym(secret) {
			t.Errorf("%q becomes %q and %q", secret, got, testKey().pseudonym(secret))
		}
		if other := NewKey().pseudonym(secret); other == got && len(secret) > 6 {
			t.Errorf("%q becomes %q with two keys", secret, got)
		}
		if len(got) > max(len(secret), 40) && !strings.HasPrefix(got, "-----") {
			t.Errorf("%q becomes %q, which is longer", secret, got)
		}
		if strings.HasSuffix(got, "\n") != strings.HasSuffix(secret, "\n") {
			t.Errorf("%q becomes %q, with another end", secret, got)
		}
	}
}

// TestLengths requires that the pseudonym of a long secret does not reveal its exact length.
func TestLengths(t *testing.T) {
	lengths := map[int]bool{}
	for n := 16; n < 24; n++ {
		lengths[len(testKey().pseudonym(strings.Repeat("x", n)))] = true
	}
	if len(lengths) != 1 {
		t.Errorf("16 to 23 characters become %v", lengths)
	}
	for _, n := range []int{1, 7, 63, 64, 253, 1 << 20} {
		if got := len(testKey().pseudonym(strings.Repeat("x", n))); got > n || got < n/2 {
			t.Errorf("%d characters become %d", n, got)
		}
	}
}

// TestNumbersStayBelow requires that the pseudonym of a number is not out of the range of its field.
func TestNumbersStayBelow(t *testing.T) {
	for _, text := range []string{"65535", "2147483647", "9223372036854775807", "-2147483648", "20", "0.75", "1e3"} {
		got := testKey().number(text)
		if !json.Valid([]byte(got)) || len(got) != len(text) || strings.TrimPrefix(got, "-") > strings.TrimPrefix(text, "-") && text != "1e3" {
			t.Errorf("%s becomes %s", text, got)
		}
	}
}

func TestHarmlessTextStays(t *testing.T) {
	for _, text := range []string{"", "true", "False", "1", "none"} {
		if !harmless(text) {
			t.Errorf("%q is replaced", text)
		}
	}
}

func TestKeyFile(t *testing.T) {
	name := t.TempDir() + "/key"
	first, err := KeyFile(name)
	if err != nil {
		t.Fatal(err)
	}
	again, err := KeyFile(name)
	if err != nil || again.ID() != first.ID() || again.pseudonym("hunter2") != first.pseudonym("hunter2") {
		t.Errorf("the file has another key: %v", err)
	}
	if NewKey().ID() == first.ID() {
		t.Error("two keys have one name")
	}
	for _, text := range []string{"", "abc", strings.Repeat("z", 64)} {
		bad := writeFile(t, text)
		if _, err := KeyFile(bad); err == nil || !strings.Contains(err.Error(), bad+" is not a key: want 64 hexadecimal digits") {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := KeyFile(t.TempDir() + "/no/key"); err == nil {
		t.Error("a key was written to a folder that does not exist")
	}
}
