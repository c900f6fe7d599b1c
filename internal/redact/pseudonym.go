// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/netip"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/admitkit/admitkit/internal/jsonraw"
)

// pseudonym returns the text that replaces a secret. It depends only on the key and the secret, so equal values stay
// equal. It has the shape of the secret, so that an object stays valid: a number stays a number, a quantity a quantity,
// an IP address an IP address, a JSON document a JSON document. Any other text becomes lower-case letters and digits,
// which are also a valid label value and DNS label. A pseudonym is never longer than the secret, except for a short JSON
// document or PEM block. The pseudonym of a long text shows only roughly how long the text is.
func (k Key) pseudonym(secret string) string {
	body := strings.TrimRight(secret, "\n")
	if body == "" {
		return secret
	}
	end := secret[len(body):]
	if len(end) > 1 {
		end = "\n"
	}
	g := generator{key: k, sum: k.sum("value", body)}
	for _, shape := range shapes {
		if text, ok := shape(&g, body); ok {
			return text + end
		}
	}
	return g.word(len(body)) + end
}

// harmless reports whether a text is too common to be a secret. Such a text stays, because hooks often test for it.
func harmless(text string) bool {
	switch strings.ToLower(text) {
	case "", "0", "1", "true", "false", "yes", "no", "on", "off", "none", "null":
		return true
	}
	return false
}

// A generator makes text from the sum of a secret.
type generator struct {
	key Key
	sum []byte
	at  int
}

// next returns a number from 0 to n-1. n must be at most 256.
func (g *generator) next(n int) int {
	if g.at == len(g.sum) {
		g.sum, g.at = g.key.sum("more", string(g.sum)), 0
	}
	g.at++
	return int(g.sum[g.at-1]) % n
}

const (
	digits    = "0123456789"
	hexDigits = "0123456789abcdef"
	lowerWord = "abcdefghijklmnopqrstuvwxyz0123456789"
	base64s   = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
)

// longest is the length of the part that long pseudonyms repeat, so that they can be compressed.
const longest = 64

// text returns n characters of an alphabet. The first character is one of the first 26 of the alphabet.
func (g *generator) text(alphabet string, n int) string {
	part := make([]byte, min(n, longest))
	for i := range part {
		if i == 0 {
			part[i] = alphabet[g.next(min(26, len(alphabet)))]
		} else {
			part[i] = alphabet[g.next(len(alphabet))]
		}
	}
	if n <= longest {
		return string(part)
	}
	return strings.Repeat(string(part), n/longest+1)[:n]
}

// word returns a word that stands for a text of n bytes.
func (g *generator) word(n int) string { return g.text(lowerWord, class(n)) }

// class returns the length of the pseudonym for a secret of n bytes: n for a short secret, and otherwise n
// rounded down to one of a few lengths.
func class(n int) int {
	if n <= 8 {
		return n
	}
	for c := 8; ; c *= 2 {
		switch {
		case n < c+c/2:
			return c
		case n < 2*c:
			return c + c/2
		}
	}
}

// A shape returns the pseudonym for secrets of one shape, or false.
type shape func(g *generator, secret string) (string, bool)

var shapes = []shape{
	numberShape, durationShape, addressShape, timeShape, uuidShape, hexShape, documentShape, pemShape, urlShape,
	emailShape, base64Shape,
}

// quantity matches numbers, quantities and percentages.
var quantity = lazy(`^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,2}|[numkKMGTPE]|[KMGTPE]i|%)?$`)

func numberShape(g *generator, secret string) (string, bool) {
	m := quantity().FindStringSubmatchIndex(secret)
	if m == nil {
		return "", false
	}
	return g.digits(secret[:m[3]]) + secret[m[3]:], true
}

// digits replaces the digits of a text. The first digit becomes a smaller one, so that a port, for example, stays below
// 65536. Only 0 and 1 stay.
func (g *generator) digits(text string) string {
	out, first := []byte(text), true
	for i, c := range out {
		switch {
		case c < '0' || c > '9':
			continue
		case !first:
			out[i] = digits[g.next(10)]
		case c != '0':
			out[i] = digits[1+g.next(max(int(c-'0')-1, 1))]
		}
		first = false
	}
	return string(out)
}

// number returns the pseudonym of a JSON number, which is a JSON number too.
func (k Key) number(text string) string {
	end := strings.IndexAny(text, "eE")
	if end < 0 {
		end = len(text)
	}
	g := generator{key: k, sum: k.sum("value", text)}
	return g.digits(text[:end]) + text[end:]
}

func durationShape(g *generator, secret string) (string, bool) {
	if len(secret) > 20 || strings.ContainsAny(secret, ".µ") {
		return "", false
	}
	if _, err := time.ParseDuration(secret); err != nil {
		return "", false
	}
	return g.digits(secret), true
}

func addressShape(g *generator, secret string) (string, bool) {
	if len(secret) > 60 || !strings.ContainsAny(secret, ".:") {
		return "", false
	}
	if a, err := netip.ParseAddr(secret); err == nil {
		return g.address(a).String(), true
	}
	if p, err := netip.ParsePrefix(secret); err == nil {
		return netip.PrefixFrom(g.address(p.Addr()), p.Bits()).Masked().String(), true
	}
	if p, err := netip.ParseAddrPort(secret); err == nil {
		return netip.AddrPortFrom(g.address(p.Addr()), p.Port()).String(), true
	}
	return "", false
}

// address returns a private address.
func (g *generator) address(a netip.Addr) netip.Addr {
	if a.Is4() {
		return netip.AddrFrom4([4]byte{10, byte(g.next(256)), byte(g.next(256)), byte(1 + g.next(254))})
	}
	b := [16]byte{0: 0xfd}
	for i := 1; i < len(b); i++ {
		b[i] = byte(g.next(256))
	}
	return netip.AddrFrom16(b)
}

func timeShape(g *generator, secret string) (string, bool) {
	if len(secret) < len(time.DateOnly) || len(secret) > len(time.RFC3339Nano) {
		return "", false
	}
	if _, err := time.Parse(time.RFC3339, secret); err != nil {
		return "", false
	}
	const day = 24 * time.Hour
	at := time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC)
	at = at.Add(time.Duration(g.next(256)*32+g.next(32))*day/2 + time.Duration(g.next(256)*168)*time.Second)
	return at.Format(time.RFC3339), true
}

var uuid = lazy(`^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$`)

func uuidShape(g *generator, secret string) (string, bool) {
	if !uuid().MatchString(secret) {
		return "", false
	}
	h := g.text(hexDigits, 32)
	return fmt.Sprintf("%s-%s-4%s-8%s-%s", h[:8], h[8:12], h[12:15], h[15:18], h[18:30]), true
}

func hexShape(g *generator, secret string) (string, bool) {
	if _, err := hex.DecodeString(secret); err != nil || len(secret) < 16 || !strings.ContainsAny(secret, "abcdefABCDEF") {
		return "", false
	}
	return g.text(hexDigits, class(len(secret))), true
}

// documentShape keeps JSON documents, because the API server checks the data of Secrets for an image registry.
func documentShape(g *generator, secret string) (string, bool) {
	object := strings.HasPrefix(secret, "{")
	if !object && !strings.HasPrefix(secret, "[") {
		return "", false
	}
	c := jsonraw.NewCursor([]byte(secret))
	if c.Skip() != nil || c.End() != nil {
		return "", false
	}
	if object {
		return `{"redacted":"` + g.word(max(len(secret)-15, 8)) + `"}`, true
	}
	return `["` + g.word(max(len(secret)-4, 8)) + `"]`, true
}

// pemShape does not keep the label, so that a scanner for secrets does not report the file.
func pemShape(g *generator, secret string) (string, bool) {
	const begin, end = "-----BEGIN REDACTED-----\n", "\n-----END REDACTED-----"
	if !strings.HasPrefix(secret, "-----BEGIN ") {
		return "", false
	}
	return begin + g.text(base64s, class(max(len(secret)-len(begin)-len(end), 64))) + end, true
}

var urlScheme = lazy(`^[a-zA-Z][a-zA-Z0-9+.-]{1,15}://`)

func urlShape(g *generator, secret string) (string, bool) {
	scheme := urlScheme().FindString(secret)
	if rest := len(secret) - len(scheme); scheme != "" && rest > 0 {
		return scheme + g.word(min(rest, 63)), true
	}
	return "", false
}

var email = lazy(`^[^@\s:/]+@[^@\s:/]+\.[a-zA-Z]{2,}$`)

func emailShape(g *generator, secret string) (string, bool) {
	const domain = "@e.example"
	if !email().MatchString(secret) || len(secret) <= len(domain) {
		return "", false
	}
	return g.word(len(secret)-len(domain)) + domain, true
}

// base64Shape keeps base64, because the fields of custom resources may need it.
func base64Shape(g *generator, secret string) (string, bool) {
	if len(secret) < 12 || len(secret)%4 != 0 {
		return "", false
	}
	if _, err := base64.StdEncoding.DecodeString(secret); err != nil || !mixed(secret) && !strings.HasSuffix(secret, "=") {
		return "", false
	}
	return g.text(base64s, class(len(secret))), true
}

// mixed reports whether a text has lower-case letters, upper-case letters and digits.
func mixed(text string) bool {
	return strings.ContainsAny(text, digits) && strings.ContainsAny(text, lowerWord[:26]) &&
		strings.ContainsAny(text, base64s[:26])
}

// lazy returns a function that compiles an expression at its first use, so that programs that link this package start
// quickly.
func lazy(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}
