// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/admitkit/admitkit/internal/jsonraw"
)

// A dictionary holds the secrets of a call, and replaces copies of them elsewhere in the call: in annotations, messages
// and patches. The zero value is ready for use.
type dictionary struct {
	words  map[string]word
	public map[string]bool // values that identify objects
	index  map[[minCopied]byte][]copyForm
	work   int // comparisons of texts so far
}

// maxWork is the maximum number of comparisons for a call. Only a hostile request needs as many.
const maxWork = 20_000_000

// A word is a secret and its pseudonym.
type word struct {
	pseudonym string
	certain   bool // false if the value may be no secret
}

// A copyForm is a form of a secret to search for, such as its base64, with the text that replaces it.
type copyForm struct {
	text, pseudonym string
	scope           scope
	certain         bool // see word
}

// A scope is the kind of text in which copies of a secret are replaced.
type scope int

const (
	everywhere scope = iota
	asWord           // in all strings, but not as a part of a word
	inProse          // only in text that no program depends on, and not as a part of a word
)

// minCopied is the length of the shortest secret whose copies are replaced. Shorter ones are part of too many other words.
const minCopied = 4

// The bounds of a dictionary. Of all secrets, only a file in a ConfigMap or Secret can have so many lines.
const (
	maxLines   = 1000
	maxEscaped = 8 << 10 // longest secret whose escaped copies are searched, in bytes
)

// add adds a secret. certain is false for a value that may be no secret, such as that of an environment variable. of
// returns the pseudonym of a part of the secret.
func (d *dictionary) add(secret, pseudonym string, certain bool, of func(string) string) {
	if d.words == nil {
		d.words = map[string]word{}
	}
	d.addWord(secret, pseudonym, certain)
	if trimmed := strings.TrimSpace(secret); trimmed != secret {
		d.addWord(trimmed, of(trimmed), certain)
	}
	if lines := strings.SplitN(secret, "\n", maxLines); len(lines) > 1 {
		for _, line := range lines {
			if line = strings.TrimSpace(line); len(line) >= 2*minCopied {
				d.addWord(line, of(line), false)
			}
		}
	}
}

func (d *dictionary) addWord(secret, pseudonym string, certain bool) {
	if len(secret) < minCopied || harmless(secret) {
		return
	}
	w, known := d.words[secret]
	if !known {
		w.pseudonym = pseudonym
	}
	w.certain = w.certain || certain
	d.words[secret] = w
}

// distinctive reports whether equal texts in a request are probably copies of this one. Words such as Always, constants
// such as NET_ADMIN, paths, host names, images and numbers also occur by chance.
func distinctive(text string) bool {
	if len(text) < 6 || strings.HasPrefix(text, "/") || quantity().MatchString(text) || isConstant(text) {
		return false
	}
	letters, signs, lower := true, false, true
	for i := range len(text) {
		switch b := text[i]; {
		case strings.IndexByte("./:-", b) >= 0:
			signs, letters = true, false
		case '0' <= b && b <= '9':
			letters, lower = false, false
		case isUpper(b):
			lower = false
		case b < 'a' || b > 'z':
			letters, lower = false, false
		}
	}
	switch {
	case letters:
		return lower && len(text) >= 12
	case signs:
		return len(text) >= 16 && mixed(text)
	}
	return true
}

// isConstant reports whether a text has only upper-case letters and underscores.
func isConstant(text string) bool { return strings.Trim(text, base64s[:26]+"_") == "" }

// collectPublic collects the values of fields that identify objects.
func (d *dictionary) collectPublic(n *node) {
	for i := range n.kids {
		kid := &n.kids[i]
		switch {
		case n.names == nil:
			d.collectPublic(kid)
		case kid.kind != jsonraw.String:
			is, _ := isEnvironment(n.names[i])
			if !ownNames[n.names[i]] && !(is && kid.kind == jsonraw.Object) {
				d.collectPublic(kid)
			}
		case isPublic(n.names[i]) && !kid.done:
			d.public[kid.text] = true
		}
	}
}

// ownNames are the names of maps with keys that users choose.
var ownNames = setOf("data stringData binaryData annotations labels extra")

// build prepares the search. It must be called after the last add.
func (d *dictionary) build() {
	if len(d.words) == 0 {
		return
	}
	d.index = map[[minCopied]byte][]copyForm{}
	for secret, w := range d.words {
		if d.public[secret] {
			continue
		}
		r := inProse
		switch {
		case distinctive(secret):
			r = everywhere
		case w.certain && len(secret) >= 8:
			r = asWord
		}
		d.addCopy(copyForm{secret, w.pseudonym, r, w.certain})
		if len(secret) > maxEscaped {
			continue
		}
		for _, escape := range escapes {
			if text := escape(secret); text != secret {
				d.addCopy(copyForm{text, escape(w.pseudonym), r, w.certain})
			}
		}
	}
	for key, all := range d.index {
		slices.SortFunc(all, func(a, b copyForm) int {
			if n := len(b.text) - len(a.text); n != 0 {
				return n
			}
			return cmp.Or(strings.Compare(a.text, b.text), cmp.Compare(a.scope, b.scope), strings.Compare(a.pseudonym, b.pseudonym))
		})
		d.index[key] = slices.CompactFunc(all, func(a, b copyForm) bool { return a.text == b.text })
	}
}

func (d *dictionary) addCopy(c copyForm) {
	key := [minCopied]byte([]byte(c.text[:minCopied]))
	d.index[key] = append(d.index[key], c)
}

// escapes are the ways in which programs write a value into a message, a URL or another document.
var escapes = []func(string) string{
	func(s string) string { return inner(strconv.Quote(s)) },
	func(s string) string {
		quoted, _ := json.Marshal(s) // a string always marshals
		return inner(string(quoted))
	},
	url.QueryEscape,
	url.PathEscape,
	func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) },
	func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) },
}

func inner(quoted string) string { return quoted[1 : len(quoted)-1] }

// replace returns the text with pseudonyms instead of the secrets whose scope includes texts of this kind. With named true,
// the text identifies something, and only certain secrets are replaced.
func (d *dictionary) replace(text string, kind scope, named bool) string {
	if len(d.index) == 0 || len(text) < minCopied {
		return text
	}
	if kind == asWord && strings.ContainsAny(text, " \n") {
		kind = inProse
	}
	var out strings.Builder
	from := 0
	for i := 0; i+minCopied <= len(text); i++ {
		candidates := d.index[[minCopied]byte([]byte(text[i:i+minCopied]))]
		if d.work += len(candidates); d.work > maxWork {
			return text // the call fails
		}
		for _, c := range candidates {
			if !strings.HasPrefix(text[i:], c.text) || c.scope > kind || named && !c.certain || c.scope != everywhere && !isWordAt(text, i, i+len(c.text)) {
				continue
			}
			out.WriteString(text[from:i])
			out.WriteString(c.pseudonym)
			from = i + len(c.text)
			i = from - 1
			break
		}
	}
	if from == 0 {
		return text
	}
	out.WriteString(text[from:])
	return out.String()
}

// isWordAt reports whether no letter or digit is next to a part of a text.
func isWordAt(text string, start, end int) bool {
	return (start == 0 || !isWordByte(text[start-1])) && (end == len(text) || !isWordByte(text[end]))
}
