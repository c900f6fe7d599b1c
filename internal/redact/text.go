// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"encoding/base64"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// A span is the place of a secret in a text.
type span struct{ start, end int }

// A textKind is the kind of a text in which secrets are searched.
type textKind int

const (
	prose      textKind = iota // any other text
	arguments                  // the arguments of a command
	identifier                 // a name, a user or an image, in which a colon has another meaning
)

// A scanner finds secrets in a text by their form, or by the word before them.
type scanner struct {
	text  string
	lines bool // the text has several lines
	whole bool // the text is a manifest of a Secret or ConfigMap, so each value is secret
	kind  textKind
	found []span
}

// secretsIn returns the places of the secrets in a text, in order and without overlap.
func secretsIn(text string, kind textKind) []span {
	if len(text) < 6 {
		return nil
	}
	s := scanner{text: text, kind: kind, lines: strings.Contains(text, "\n")}
	s.whole = s.lines && (strings.Contains(text, "kind: Secret") || strings.Contains(text, "kind: ConfigMap"))
	if kind != identifier {
		s.pairs()
	}
	s.schemes()
	s.addresses()
	s.blocks()
	s.tokens()
	return merge(s.found)
}

func (s *scanner) add(start, end int) {
	if start < end && !harmless(s.text[start:end]) {
		s.found = append(s.found, span{start, end})
	}
}

// merge sorts spans and joins those that overlap.
func merge(spans []span) []span {
	slices.SortFunc(spans, func(a, b span) int { return a.start - b.start })
	var out []span
	for _, next := range spans {
		if last := len(out) - 1; last >= 0 && next.start < out[last].end {
			out[last].end = max(out[last].end, next.end)
			continue
		}
		out = append(out, next)
	}
	return out
}

// pairs finds values after the name of a credential, as in password=…, "token": "…" and --api-key ….
func (s *scanner) pairs() {
	for i := range len(s.text) {
		if last := len(s.found) - 1; last >= 0 && i < s.found[last].end {
			continue // in a value
		}
		switch s.text[i] {
		case '=', ':':
			s.pair(i)
		case ' ':
			if s.flagBefore(i) {
				s.value(i+1, false)
			}
		}
	}
}

// pair finds the value after the separator at i, if the word before it names a credential.
func (s *scanner) pair(i int) {
	end := i
	for end > 0 && strings.IndexByte(" \"'\\", s.text[end-1]) >= 0 {
		end--
	}
	start := end
	for start > 0 && end-start < 80 && (isWordByte(s.text[start-1]) || strings.IndexByte("_.-", s.text[start-1]) >= 0) {
		start--
	}
	name := s.text[start:end]
	if name == "" || i+1 < len(s.text) && (s.text[i+1] == '=' || s.text[i] == ':' && s.text[i+1] == ':') {
		return // a comparison, or the name of a package
	}
	if s.text[i] == ':' && start > 0 && s.text[start-1] == ':' {
		return // a part of a user name, as in system:serviceaccount:secret:default
	}
	switch {
	case isCredential(name):
	case s.lines && name == "value" && s.text[i] == ':': // of an environment variable in a manifest
	case s.whole && s.text[i] == ':' && !isPublic(name):
		s.value(i+1, true)
		return
	default:
		return
	}
	s.value(i+1, s.text[i] == ':')
}

// flagBefore reports whether the space at i follows a flag of a credential.
func (s *scanner) flagBefore(i int) bool {
	start := strings.LastIndexAny(s.text[max(0, i-80):i], " \t\n'\"") + 1 + max(0, i-80)
	word := s.text[start:i]
	return isSecretFlag(word) && (s.kind == arguments || strings.HasPrefix(word, "--"))
}

// isSecretFlag reports whether the argument after this one is a credential.
func isSecretFlag(word string) bool {
	return len(word) > 1 && word[0] == '-' && !strings.Contains(word, "=") && (isCredential(strings.TrimLeft(word, "-")) || word == "-p")
}

// proseWords are words that follow the name of a credential in a sentence, as in "spec.token: Required value".
var proseWords = setOf(`required invalid forbidden unsupported duplicate too must is are was not no cannot the a an may should
	missing expired has have in for from with of to and or internal error value found unknown this that it exec denied`)

func setOf(words string) map[string]bool {
	set := map[string]bool{}
	for _, word := range strings.Fields(words) {
		set[word] = true
	}
	return set
}

// value adds the value that begins at i, after white space and quotes. With sentence true, the first word of a sentence is
// not a value.
func (s *scanner) value(i int, sentence bool) {
	for i < len(s.text) && (s.text[i] == ' ' || s.text[i] == '\t') {
		i++
	}
	escaped := strings.HasPrefix(s.text[i:], `\"`)
	if escaped {
		i++
	}
	if i == len(s.text) {
		return
	}
	if quote := s.text[i]; quote == '"' || quote == '\'' {
		s.add(i+1, s.closing(i+1, quote, escaped))
		return
	}
	end := i
	stops := " \t\r\n\"'`,;&)}]<>|\\"
	if s.lines && sentence {
		stops = "\r\n" // a value of YAML or of a properties file can have spaces
	}
	for end < len(s.text) && strings.IndexByte(stops, s.text[end]) < 0 {
		end++
	}
	word := s.text[i:end]
	switch {
	case sentence && proseWords[strings.ToLower(strings.TrimRight(word, ".:"))]:
	case strings.HasPrefix(word, "$(") || strings.HasPrefix(word, "${") || strings.HasPrefix(word, "{{"): // a reference
	default:
		s.add(i, i+len(strings.TrimRight(word, ". ")))
	}
}

// closing returns the index of the quote that ends a quoted text.
func (s *scanner) closing(i int, quote byte, escaped bool) int {
	for ; i < len(s.text); i++ {
		switch {
		case s.text[i] == '\\' && escaped && i+1 < len(s.text) && s.text[i+1] == quote:
			return i
		case s.text[i] == '\\':
			i++
		case s.text[i] == quote:
			return i
		}
	}
	return len(s.text)
}

var authSchemes = setOf("bearer basic token apikey negotiate splunk")

// schemes finds the credentials of an Authorization header.
func (s *scanner) schemes() {
	for i := 4; i < len(s.text); i++ {
		if s.text[i] != ' ' && s.text[i] != '+' {
			continue
		}
		name := i
		for name > 0 && i-name <= 10 && isWordByte(s.text[name-1]) {
			name--
		}
		if !authSchemes[strings.ToLower(s.text[name:i])] {
			continue
		}
		start := i
		for start < len(s.text) && (s.text[start] == ' ' || s.text[start] == '+') {
			start++
		}
		end := start
		for end < len(s.text) && (isWordByte(s.text[end]) || strings.IndexByte("-._~+/=|", s.text[end]) >= 0) {
			end++
		}
		if isCredentials(strings.ToLower(s.text[name:i]), s.text[start:end]) {
			s.add(start, end)
		}
		i = end
	}
}

// isCredentials reports whether a text that follows the name of an authentication scheme is not a word of a sentence.
func isCredentials(scheme, text string) bool {
	switch {
	case len(text) < 8:
		return false
	case scheme == "bearer":
		return !strings.HasPrefix(text, "auth") && !strings.HasPrefix(text, "token")
	}
	return strings.Trim(text, lowerWord[:26]) != ""
}

// addresses finds the user information of URLs and of data source names such as user:password@tcp(host)/db.
func (s *scanner) addresses() {
	if !strings.Contains(s.text, "@") {
		return
	}
	for start := 0; start < len(s.text); start++ {
		end := start
		for end < len(s.text) && strings.IndexByte(" \t\r\n\"'`<>,;()[]{}|", s.text[end]) < 0 {
			end++
		}
		s.address(start, end)
		start = end
	}
}

// address finds the user information in the word between two places of the text.
func (s *scanner) address(start, end int) {
	scheme := false
	for {
		word := s.text[start:end]
		i := strings.Index(word, "://")
		if i < 0 {
			break
		}
		scheme = true
		start += i + len("://")
		start += s.authority(start, end)
	}
	at := strings.IndexByte(s.text[start:end], '@')
	if scheme || at < 0 || strings.HasPrefix(s.text[start+at:], "@sha") { // a digest of an image
		return
	}
	user, password, ok := strings.Cut(s.text[start:start+at], ":")
	if ok && user != "" && user != "mailto" && !strings.Contains(user, "/") {
		s.add(start+at-len(password), start+at)
	}
}

// authority finds the user information that begins at start, after the scheme of a URL. It returns its length.
func (s *scanner) authority(start, end int) int {
	word := s.text[start:end]
	host := strings.IndexAny(word, "/?#")
	if host < 0 {
		host = len(word)
	}
	if _, port, ok := strings.Cut(word[:host], ":"); ok && !strings.Contains(port, "@") && strings.Trim(port, digits) != "" {
		host = len(word) // no port, so the slash is a part of the password
	}
	at := strings.LastIndexByte(word[:host], '@')
	if at < 0 {
		return 0
	}
	user, password, _ := strings.Cut(word[:at], ":")
	s.add(start, start+len(user))
	s.add(start+at-len(password), start+at)
	return at
}

// blocks finds private keys in PEM.
func (s *scanner) blocks() {
	const begin, maxLabel = "-----BEGIN ", 64
	for from := 0; ; {
		i := strings.Index(s.text[from:], begin)
		if i < 0 {
			return
		}
		start := from + i
		from = start + len(begin)
		label, _, _ := strings.Cut(s.text[from:min(from+maxLabel, len(s.text))], "-----")
		if !strings.Contains(label, "PRIVATE KEY") {
			continue
		}
		end := "-----END " + label + "-----"
		i = strings.Index(s.text[start:], end)
		if i < 0 {
			s.add(start, len(s.text))
			return
		}
		from = start + i + len(end)
		s.add(start, from)
	}
}

// known matches the tokens of common services, JWTs, and hashes of passwords.
var known = regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(\.[A-Za-z0-9_-]*)?` +
	`|\b(AKIA|ASIA)[0-9A-Z]{16}\b|\bgh[pousr]_[0-9A-Za-z]{20,}|\bgithub_pat_[0-9A-Za-z_]{20,}|\bglpat-[0-9A-Za-z_-]{16,}` +
	`|\bxox[a-z]-[0-9A-Za-z-]{10,}|\b[sr]k[-_][0-9A-Za-z_-]{16,}|\bAIza[0-9A-Za-z_-]{30,}|\bnpm_[0-9A-Za-z]{30,}` +
	`|\bhv[sbr]\.[0-9A-Za-z_-]{20,}|\bSG\.[0-9A-Za-z_-]{16,}\.[0-9A-Za-z_-]{16,}|\bya29\.[0-9A-Za-z_-]{20,}` +
	`|\bdop_v1_[0-9a-f]{40,}|\bAGE-SECRET-KEY-1[0-9A-Z]{20,}|\$(2[aby]|apr1|[156])\$[./0-9A-Za-z$]{16,}`)

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

var knownPrefixes = [...]string{"eyJ", "AKIA", "ASIA", "AIza", "AGE-", "gh", "github_pat_", "glpat-", "xox", "sk-", "sk_", "rk-", "rk_", "npm_", "hv", "SG.", "ya29.", "dop_v1_"}

// tokens finds tokens by their form, and long random texts.
func (s *scanner) tokens() {
	if len(s.text) < 14 {
		return
	}
	if mayBeKnown(s.text) {
		for _, m := range known.FindAllStringIndex(s.text, -1) {
			s.add(m[0], m[1])
		}
	}
	for start := 0; start < len(s.text); start++ {
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
	case isPublicPEM(plain):
	case bootstrap(s.text, start, end), random(text), plain != "" && len(secretsIn(plain, prose)) > 0:
		s.add(start, end)
	}
}

// decoded returns the text that base64 encodes, or "" if it is not readable text.
func decoded(text string) string {
	for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.RawURLEncoding} {
		plain, err := encoding.DecodeString(text)
		if err == nil && !slices.ContainsFunc(plain, func(b byte) bool { return b < ' ' && b != '\n' && b != '\r' && b != '\t' || b > '~' }) {
			return string(plain)
		}
	}
	return ""
}

// isPublicPEM reports whether a text has certificates or public keys, and no private key.
func isPublicPEM(text string) bool {
	return strings.Contains(text, "-----BEGIN ") && !strings.Contains(text, "PRIVATE KEY")
}

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

var bootstrapToken = regexp.MustCompile(`^[a-z0-9]{6}\.[a-z0-9]{16}$`)

// bootstrap reports whether the run is the second part of a bootstrap token, such as abcdef.0123456789abcdef.
func bootstrap(text string, start, end int) bool {
	if start < 7 || end-start != 16 || start > 7 && isWordByte(text[start-8]) {
		return false
	}
	return bootstrapToken.MatchString(text[start-7:end]) && strings.ContainsAny(text[start:end], digits)
}

// unescaped returns the text behind percent signs, if it differs.
func unescaped(text string) (string, bool) {
	if !strings.Contains(text, "%") {
		return "", false
	}
	plain, err := url.PathUnescape(text)
	return plain, err == nil && plain != text
}
