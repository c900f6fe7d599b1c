// SPDX-License-Identifier: Apache-2.0

// Package redact replaces the secrets in an AdmissionReview and in its answer with pseudonyms.
//
// Secrets are: the data of Secrets and ConfigMaps, the values of environment variables, userInfo.extra, the values of
// fields, variables, headers and flags whose names are those of credentials, the user information of URLs, private keys,
// tokens, and the fields that the user names. They are found in objects, in patches, and in documents inside strings,
// such as the annotation last-applied-configuration. Copies of the secrets of a request are also replaced elsewhere in
// the request and in the answer.
package redact

import (
	"encoding/base64"
	"errors"
	"strings"

	"github.com/admitkit/admitkit/internal/jsonraw"
	"github.com/admitkit/admitkit/internal/textutil"
)

// MaxValues is the maximum number of JSON values in a request and its answer.
const MaxValues = 500_000

// ErrTooLarge is the cause of an error about documents with more than MaxValues, or with very many copies of secrets.
var ErrTooLarge = errors.New("the documents are too large")

// maxText is the maximum length of an answer that is not JSON, in bytes.
const maxText = 2 << 10

// A Redactor redacts calls. It is safe for concurrent use.
type Redactor struct {
	key   Key
	paths []path
	off   bool
}

// New returns a redactor. Paths are field paths of further secrets in the object, such as spec.users[*].pin. New returns
// an error if a path is invalid.
func New(key Key, paths []string) (*Redactor, error) {
	r := &Redactor{key: key}
	for _, text := range paths {
		p, err := parsePath(text)
		if err != nil {
			return nil, err
		}
		r.paths = append(r.paths, p)
	}
	return r, nil
}

// Off returns a redactor that replaces no secrets. Its results have the form that Call documents.
func Off() *Redactor { return &Redactor{off: true} }

// Call returns the request and the answer of a call without secrets. The request must be JSON. In the answer, the patch
// is JSON instead of base64. An answer that is not JSON becomes a JSON string with the beginning of the text. An empty
// answer becomes null. Call returns an error if the request is not JSON, or an error that wraps [ErrTooLarge].
func (r *Redactor) Call(request, answer []byte) (redactedRequest, redactedAnswer []byte, err error) {
	return r.call(request, answer, false)
}

// Answer returns the answer to a redacted request, without secrets. Copies of values in the request are not replaced a
// second time. So if a hook decides as before, its redacted answer is the same as before.
func (r *Redactor) Answer(redactedRequest, answer []byte) ([]byte, error) {
	_, redacted, err := r.call(redactedRequest, answer, true)
	return redacted, err
}

// Text returns a text without the secrets that can be recognized by their form, such as tokens.
func (r *Redactor) Text(text string) string {
	if r.off {
		return text
	}
	c := call{key: r.key}
	return c.scrub(text, prose)
}

func (r *Redactor) call(request, answer []byte, redacted bool) (_, _ []byte, err error) {
	c := call{key: r.key, paths: r.paths, redacted: redacted}
	review, err := c.parser.parse(request)
	if err != nil {
		return nil, nil, err
	}
	c.request = review.member("request")
	response := c.parseAnswer(answer)
	if c.parser.nodes > MaxValues {
		return nil, nil, ErrTooLarge
	}
	unpack(&c.parser, response.member("response"))
	if !r.off {
		c.redactRequest(review)
		c.redactAnswer(response)
	}
	if c.words.work > maxWork {
		return nil, nil, ErrTooLarge
	}
	if response.kind == jsonraw.String { // it is cut last, so that no part of a secret stays
		response = &node{kind: jsonraw.String, text: textutil.Clip(response.plain(), maxText)}
	}
	return review.appendTo(nil), response.appendTo(nil), nil
}

func (c *call) parseAnswer(answer []byte) *node {
	if len(answer) == 0 {
		return &node{kind: jsonraw.Null, text: "null"}
	}
	if n, err := c.parser.parse(answer); err == nil && n.kind == jsonraw.Object {
		return n
	}
	return &node{kind: jsonraw.String, text: string(answer)}
}

// unpack replaces the base64 of a patch by the patch.
func unpack(p *parser, response *node) {
	n := response.member("patch")
	if n == nil || n.kind != jsonraw.String {
		return
	}
	data, err := base64.StdEncoding.DecodeString(n.text)
	if err != nil {
		return
	}
	if patch, err := p.parse(data); err == nil && patch.kind == jsonraw.Array {
		*n = *patch
	}
}

// A call is the state of the redaction of one call.
type call struct {
	key      Key
	paths    []path
	redacted bool // the request is redacted already
	parser   parser
	request  *node
	seen     map[string]string // the pseudonyms of all values that were replaced
	words    dictionary
	known    bool // the dictionary of the request is complete
}

func (c *call) redactRequest(review *node) {
	c.walk(review, place{})
	if len(c.words.words) > 0 {
		c.words.public = map[string]bool{}
		c.words.collectPublic(review)
	}
	c.words.build()
	c.copies(review, asWord, false)
	c.known = true
}

func (c *call) redactAnswer(answer *node) {
	c.walk(answer, place{})
	c.words.build()
	c.copies(answer, inProse, false)
}

// pseudonym returns the pseudonym of a secret, and adds the pair to the dictionary.
func (c *call) pseudonym(secret string, certain bool) string {
	pseudonym, ok := c.seen[secret]
	if !ok {
		pseudonym = c.newPseudonym(secret)
		c.see(secret, pseudonym)
	}
	c.words.add(secret, pseudonym, certain, c.newPseudonym)
	if !ok {
		c.parts(secret, certain)
	}
	return pseudonym
}

// parts adds the parts of a secret to the dictionary, because a message may quote one of them. The parts are the
// strings of a JSON document, and texts with the form of a secret.
func (c *call) parts(secret string, certain bool) {
	if strings.HasPrefix(secret, "{") || strings.HasPrefix(secret, "[") {
		if doc, err := c.parser.parse([]byte(secret)); err == nil {
			doc.strings(func(text string) { c.words.add(text, c.newPseudonym(text), certain, c.newPseudonym) })
			return
		}
	}
	for _, s := range secretsIn(secret, prose) {
		if part := secret[s.start:s.end]; part != secret {
			c.words.add(part, c.newPseudonym(part), true, c.newPseudonym)
		}
	}
}

// number returns the pseudonym of a JSON number.
func (c *call) number(text string) string {
	pseudonym, ok := c.seen[text]
	switch {
	case ok:
		return pseudonym
	case c.redacted && !c.known:
		pseudonym = text
	default:
		pseudonym = c.key.number(text)
	}
	c.see(text, pseudonym)
	return pseudonym
}

func (c *call) see(secret, pseudonym string) {
	if c.seen == nil {
		c.seen = map[string]string{}
	}
	c.seen[secret] = pseudonym
}

func (c *call) newPseudonym(secret string) string {
	switch {
	case c.redacted && !c.known:
		return secret
	case c.known: // it may have copies of secrets of the request
		secret = c.words.replace(secret, inProse, false)
	}
	return c.key.pseudonym(secret)
}

// copies replaces the copies of secrets in all strings below n. With named true, n is the value of a field that
// identifies something, in which only copies of certain secrets are replaced.
func (c *call) copies(n *node, kind scope, named bool) {
	for i := range n.kids {
		below := kind
		if n.names != nil {
			named = isPublic(n.names[i])
			switch {
			case proseNames[n.names[i]]:
				below = inProse
			case n.names[i] == "patch":
				below = asWord
			}
			// The keys of managedFields have copies of the elements of sets, such as v:"hunter2".
			keys := everywhere
			if strings.HasPrefix(n.names[i], "v:") || strings.HasPrefix(n.names[i], "k:") {
				keys = inProse
			}
			n.names[i] = c.words.replace(n.names[i], keys, false)
		}
		c.copies(&n.kids[i], below, named)
	}
	switch {
	case n.nested != nil:
		if w, ok := c.words.words[strings.TrimSpace(n.text)]; ok { // the document as a whole is a copy
			n.text, n.nested, n.done = w.pseudonym, nil, true
			return
		}
		c.copies(n.nested, asWord, false)
	case n.kind == jsonraw.String && !n.done:
		n.text = c.words.replace(n.text, kind, named)
	}
}

// proseNames are the names of fields whose text no program depends on.
var proseNames = setOf("annotations auditAnnotations warnings message args command description")

// scrub returns a text without the secrets that can be recognized by their form.
func (c *call) scrub(text string, kind textKind) string {
	spans := secretsIn(text, kind)
	if len(spans) == 0 {
		return text
	}
	var out []byte
	from := 0
	for _, s := range spans {
		secret := text[s.start:s.end]
		if plain, ok := unescaped(secret); ok {
			c.pseudonym(plain, true)
		}
		out = append(out, text[from:s.start]...)
		out = append(out, c.pseudonym(secret, true)...)
		from = s.end
	}
	return string(append(out, text[from:]...))
}
