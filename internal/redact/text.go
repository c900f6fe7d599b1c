// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"net/url"
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
	s.whole = s.lines && strings.Contains(text, "kind") && manifest().MatchString(text)
	if kind != identifier {
		s.pairs()
	}
	if kind == arguments {
		s.flags()
		s.input()
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
		case '=', ':', '>':
			s.pair(i)
		case ' ', '\t':
			if s.flagBefore(i) {
				s.value(i+1, false)
			} else {
				s.wordBefore(i)
			}
		}
	}
}

// pair finds the value after the separator at i, if the word before it names a credential.
func (s *scanner) pair(i int) {
	end := i
	if end > 0 && s.text[i] == '=' && s.text[i-1] == ':' { // password := …
		end--
	}
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
	case s.text[i] == '>':
		s.xml(start, i, name)
		return
	case strings.HasPrefix(s.text[i:], "=>"):
		i++
	}
	switch {
	case isHeader(name):
		s.header(i+1, name)
		return
	case isCredential(name):
	case name == "auth" && isBasicAuth(s.base64At(i+1)):
	case s.lines && name == "value" && s.text[i] == ':': // of an environment variable in a manifest
	case strings.EqualFold(name, "value") && s.isValueOfCredential(start):
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
	if word == "-p" && !mayBePassword(s.wordAt(i+1)) {
		return false
	}
	return isSecretFlag(word) && (s.kind == arguments || strings.HasPrefix(word, "--"))
}

// isSecretFlag reports whether the argument after this one is a credential.
func isSecretFlag(word string) bool {
	if len(word) < 2 || word[0] != '-' || strings.Contains(word, "=") {
		return false
	}
	return isCredential(strings.TrimLeft(word, "-")) || word == "-p"
}

// proseWords are words that follow the name of a credential in a sentence, as in "spec.token: Required value".
var proseWords = setOf(`required invalid forbidden unsupported duplicate too must is are was not no cannot the a an may
	should missing expired has have in for from with of to and or internal error value found unknown this that it exec denied`)

func setOf(words string) map[string]bool {
	set := map[string]bool{}
	for _, word := range strings.Fields(words) {
		set[word] = true
	}
	return set
}

// value adds the value that begins at i, after white space and quotes. If sentence is true, it skips a word that begins a
// sentence.
func (s *scanner) value(i int, sentence bool) {
	for i < len(s.text) && (s.text[i] == ' ' || s.text[i] == '\t') {
		i++
	}
	if !sentence && strings.HasPrefix(s.text[i:], "\\\n") { // the command goes on in the next line
		i += len(s.text[i:]) - len(strings.TrimLeft(s.text[i:], "\\\n \t"))
	}
	if isReferenceAt(s.text[i:]) || s.lines && sentence && s.block(i) {
		return // before the rest of the line is read, so that the time does not grow with the square of the size
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
	default:
		s.add(i, i+len(strings.TrimRight(word, ". ")))
	}
}

// isReferenceAt reports whether a text begins with a reference to a variable.
func isReferenceAt(text string) bool {
	return strings.HasPrefix(text, "$(") || strings.HasPrefix(text, "${") || strings.HasPrefix(text, "{{")
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

// isCredentials reports whether a text after the name of an authentication scheme is a credential, and not the next word
// of a sentence.
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
		if rest := s.text[start:end]; !strings.ContainsAny(rest, "@/?#") {
			if _, password, ok := strings.Cut(rest, ":"); ok && strings.Trim(password, digits) != "" {
				s.authority(start, s.longer(end)) // the password has a sign that usually ends a URL
			}
		}
		start += s.authority(start, end)
	}
	at := strings.LastIndexByte(s.text[start:end], '@')
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
	for from := 0; ; {
		i := strings.Index(s.text[from:], pemBegin)
		if i < 0 {
			return
		}
		start := from + i
		from = start + len(pemBegin)
		label, _, _ := strings.Cut(s.text[from:min(from+maxPEMLabel, len(s.text))], "-----")
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

// unescaped returns the text behind percent signs, if it differs.
func unescaped(text string) (string, bool) {
	if !strings.Contains(text, "%") {
		return "", false
	}
	plain, err := url.PathUnescape(text)
	return plain, err == nil && plain != text
}
