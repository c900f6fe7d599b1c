// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"encoding/base64"
	"slices"
	"strings"
	"unicode/utf8"
)

// known matches the tokens of common services, JWTs, and hashes of passwords.
var known = lazy(`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(\.[A-Za-z0-9_-]*)?` +
	`|\b(AKIA|ASIA)[0-9A-Z]{16}\b|\bgh[pousr]_[0-9A-Za-z]{20,}|\bgithub_pat_[0-9A-Za-z_]{20,}|\bglpat-[0-9A-Za-z_-]{16,}` +
	`|\bxox[a-z]-[0-9A-Za-z-]{10,}|\b[sr]k[-_][0-9A-Za-z_-]{16,}|\bAIza[0-9A-Za-z_-]{30,}|\bnpm_[0-9A-Za-z]{30,}` +
	`|\bhv[sbr]\.[0-9A-Za-z_-]{20,}|\bSG\.[0-9A-Za-z_-]{16,}\.[0-9A-Za-z_-]{16,}|\bya29\.[0-9A-Za-z_-]{20,}` +
	`|\bdop_v1_[0-9a-f]{40,}|\bAGE-SECRET-KEY-1[0-9A-Z]{20,}|\bhooks\.slack\.com/services/[0-9A-Za-z/]{12,}|\$(2[aby]|apr1|[156])\$[./0-9A-Za-z$]{16,}`)

// shortestToken is the minimum length of a name in an object that may be a token.
const shortestToken = 16

// mayBeKnown reports whether a text has the beginning of a token that known matches. Most texts have none, and the
// regular expression is slow.
func mayBeKnown(text string) bool {
	for i := range len(text) {
		var prefixes []string
		switch text[i] {
		case 'e':
			prefixes = knownPrefixes[0:1]
		case 'A':
			prefixes = knownPrefixes[1:5]
		case 'g':
			prefixes = knownPrefixes[5:8]
		case 'S', 'd', 'h', 'n', 'r', 's', 'x', 'y':
			prefixes = knownPrefixes[8:]
		case '$':
			return true
		}
		for _, prefix := range prefixes {
			if strings.HasPrefix(text[i:], prefix) {
				return true
			}
		}
	}
	return false
}

var knownPrefixes = [...]string{
	"eyJ", "AKIA", "ASIA", "AIza", "AGE-", "gh", "github_pat_", "glpat-",
	"xox", "sk-", "sk_", "rk-", "rk_", "npm_", "hv", "hooks.slack", "SG.", "ya29.", "dop_v1_",
}

// tokens finds tokens by their form, and long random texts.
func (s *scanner) tokens() {
	if len(s.text) < 14 {
		return
	}
	if mayBeKnown(s.text) {
		for _, m := range known().FindAllStringIndex(s.text, -1) {
			s.add(m[0], m[1])
		}
	}
	public := publicBlocks(s.text)
	for start := 0; start < len(s.text); start++ {
		for len(public) > 0 && start >= public[0].start {
			start, public = max(start, public[0].end), public[1:]
		}
		end := start
		for end < len(s.text) && (isWordByte(s.text[end]) || strings.IndexByte("+/_=-", s.text[end]) >= 0) {
			end++
		}
		if end-start >= 16 {
			s.run(start, end)
		}
		start = max(start, end)
	}
}

// run adds a run of characters of base64 if it is random, or if it is the base64 of a secret.
func (s *scanner) run(start, end int) {
	text := s.text[start:end]
	if eq := strings.LastIndexByte(strings.TrimRight(text, "="), '='); eq >= 0 { // name=value
		start += eq + 1
		text = s.text[start:end]
	}
	switch plain := decoded(text); {
	case plain != "" && len(secretsIn(plain, prose)) > 0, bootstrap(s.text, start, end):
		s.add(start, end)
	case len(publicBlocks(plain)) > 0:
	case random(text):
		s.add(start, end)
	}
}

// decoded returns the text that base64 encodes, or "" if it is not readable text.
func decoded(text string) string {
	text = strings.TrimRight(text, "=")
	for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		plain, err := encoding.DecodeString(text)
		if err == nil && utf8.Valid(plain) && !slices.ContainsFunc(plain, isControl) {
			return string(plain)
		}
	}
	return ""
}

func isControl(b byte) bool { return b < ' ' && b != '\n' && b != '\r' && b != '\t' || b == 0x7f }

// isBasicAuth reports whether a text is the base64 of a user name and a password.
func isBasicAuth(text string) bool {
	user, password, ok := strings.Cut(decoded(text), ":")
	return ok && user != "" && password != "" && !strings.ContainsAny(user, " \r\n\t{\"")
}

// publicBlocks returns the places of the certificates and public keys in PEM in a text. Their text is random, too.
func publicBlocks(text string) (all []span) {
	for from := 0; ; {
		i := strings.Index(text[from:], pemBegin)
		if i < 0 {
			return all
		}
		start := from + i
		from = start + len(pemBegin)
		label, _, _ := strings.Cut(text[from:min(from+maxPEMLabel, len(text))], "-----")
		if strings.Contains(label, "PRIVATE KEY") {
			continue
		}
		i = strings.Index(text[from:], "-----END ")
		if i < 0 {
			return all
		}
		from += i
		all = append(all, span{start, from})
	}
}

// maxPEMLabel is the length of the longest label of a PEM block.
const (
	pemBegin    = "-----BEGIN "
	maxPEMLabel = 64
)

// random reports whether a text has at least 32 characters and mixes all classes of characters, as keys do. Names in
// camelCase and paths do not mix them so often, and have fewer different characters.
func random(text string) bool {
	if len(text) < 32 || strings.Count(text, "/") > 1+len(text)/20 {
		return false
	}
	lower, upper, digit, changes, distinct := 0, 0, 0, 0, 0
	last := byte(0)
	var seen [256]bool
	for i := range len(text) {
		if !seen[text[i]] {
			seen[text[i]] = true
			distinct++
		}
		var class byte
		switch b := text[i]; {
		case 'a' <= b && b <= 'z':
			class, lower = 'a', lower+1
		case isUpper(b):
			class, upper = 'A', upper+1
		case '0' <= b && b <= '9':
			class, digit = '0', digit+1
		}
		if class != last {
			changes++
		}
		last = class
	}
	if lower < 3 || upper < 3 || digit < 2 {
		return false
	}
	return changes >= len(text)/3 || changes >= len(text)/5 && distinct >= min(len(text)*3/5, 26)
}

var bootstrapToken = lazy(`^[a-z0-9]{6}\.[a-z0-9]{16}$`)

// bootstrap reports whether the run is the second part of a bootstrap token, such as abcdef.0123456789abcdef.
func bootstrap(text string, start, end int) bool {
	if start < 7 || end-start != 16 || start > 7 && isWordByte(text[start-8]) {
		return false
	}
	return bootstrapToken().MatchString(text[start-7:end]) && strings.ContainsAny(text[start:end], digits)
}
