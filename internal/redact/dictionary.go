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
	index  map[[minCopied]byte][]copied
	work   int // comparisons of texts so far
}

// maxWork is the maximum number of comparisons for a call. Only a request that was made for it needs as many.
const maxWork = 20_000_000

// A word is a secret and its pseudonym.
type word struct {
	pseudonym string
	certain   bool // it is a secret, and not only probably one
}

// A copied is a form in which a copy of a secret may be written.
type copied struct {
	text, pseudonym string
	reach           reach
}

// A reach says where copies of a secret are replaced.
type reach int

const (
	everywhere reach = iota
	asWord           // in all strings, but not as a part of a word
	inProse          // only in text that no program depends on, and not as a part of a word
)

// minCopied is the length of the shortest secret of which copies are replaced. Shorter ones are in too many other words.
const minCopied = 4

// The bounds of a dictionary. Only a file of a ConfigMap can have so many lines.
const (
	maxLines   = 1000
	maxEscaped = 8 << 10 // longest secret of which escaped copies are searched, in bytes
)

// add adds a secret. certain is false for a value that is probably no secret, such as an environment variable.
// The function of returns the pseudonym of a part of the secret.
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

// distinctive reports whether a text is unlikely to have another meaning in a request. Words such as Always, paths,
// names of hosts and images, and numbers have one.
func distinctive(text string) bool {
	if len(text) < 6 || strings.HasPrefix(text, "/") || quantity().MatchString(text) {
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

// ownNames are the names of maps whose keys are chosen by users.
var ownNames = setOf("data stringData binaryData annotations labels extra")

// build prepares the search. It must be called after the last add.
func (d *dictionary) build() {
	if len(d.words) == 0 {
		return
	}
	d.index = map[[minCopied]byte][]copied{}
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
		d.addCopy(secret, w.pseudonym, r)
		if len(secret) > maxEscaped {
			continue
		}
		for _, escape := range escapes {
			if text := escape(secret); text != secret {
				d.addCopy(text, escape(w.pseudonym), r)
			}
		}
	}
	for key, all := range d.index {
		slices.SortFunc(all, func(a, b copied) int {
			if n := len(b.text) - len(a.text); n != 0 {
				return n
			}
			return cmp.Or(strings.Compare(a.text, b.text), cmp.Compare(a.reach, b.reach), strings.Compare(a.pseudonym, b.pseudonym))
		})
		d.index[key] = slices.CompactFunc(all, func(a, b copied) bool { return a.text == b.text })
	}
}

func (d *dictionary) addCopy(text, pseudonym string, r reach) {
	key := [minCopied]byte([]byte(text[:minCopied]))
	d.index[key] = append(d.index[key], copied{text, pseudonym, r})
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

// replace returns a text in which pseudonyms replace the secrets that reach as far as the kind of the text.
func (d *dictionary) replace(text string, kind reach) string {
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
			if !strings.HasPrefix(text[i:], c.text) || c.reach > kind || c.reach != everywhere && !isWordAt(text, i, i+len(c.text)) {
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
