// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"encoding/base64"
	"strings"

	"github.com/admitkit/admitkit/internal/jsonraw"
)

// A rule selects the parts of a value that are secret.
type rule int

const (
	byForm   rule = iota // only texts with the form of a secret
	certain              // all strings and numbers
	likely               // all strings and numbers, although few of them are secrets
	encoded              // all strings; they are base64
	variable             // the values of environment variables
	argument             // the arguments of a command
)

// A place is the position of a value in a document.
type place struct {
	name  string // of the member that is, or contains, the value
	rule  rule
	depth int    // of documents in strings
	paths []path // the paths of the user that match so far, without the names that matched
	item  bool   // the value is an element of an array
	refs  bool   // the value may have references to variables
}

// lastApplied is the annotation in which kubectl apply stores the object.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// maxNested is the depth to which documents in strings are read.
const maxNested = 4

// walk replaces the secrets below n.
func (c *call) walk(n *node, p place) {
	switch n.kind {
	case jsonraw.Object:
		f := factsOf(n)
		for i := range n.kids {
			value := &n.kids[i]
			if n.names[i] == "patch" && value.kind == jsonraw.Array && p.name == "response" {
				c.patch(value)
				continue
			}
			c.walk(value, c.member(f, p, n.names[i], value))
			if len(n.names[i]) >= shortestToken && mayBeKnown(n.names[i]) {
				n.names[i] = c.scrub(n.names[i], identifier)
			}
		}
	case jsonraw.Array:
		c.walkArray(n, p)
	case jsonraw.String:
		c.walkString(n, p)
	case jsonraw.Number:
		c.walkNumber(n, p)
	default:
	}
}

func (c *call) walkArray(n *node, p place) {
	for i := range n.kids {
		at := c.element(p, "*")
		if kid := &n.kids[i]; at.rule == argument && i > 0 && isSecretArgument(n.kids[i-1].text, kid.text) {
			at.rule = certain
		}
		c.walk(&n.kids[i], at)
	}
}

// element returns the place of an element of an array at p.
func (c *call) element(p place, index string) place {
	p.item = true
	left, done := next(p.paths, index)
	if p.paths = left; done {
		p.rule = certain
	}
	return p
}

// isSecretArgument reports whether an argument is the value of the flag before it.
func isSecretArgument(flag, argument string) bool {
	switch {
	case strings.HasPrefix(argument, "-"):
		return false
	case flag == "-p": // a password, a port or a folder
		return mayBePassword(argument)
	case passwordFlags[flag]:
		return isPassword(argument)
	case flag == "-u" || flag == "--user":
		return strings.Contains(argument, ":")
	case flag == "-U":
		return strings.Contains(argument, "%")
	case flag == "--from-literal":
		return true
	}
	return isSecretFlag(flag)
}

// facts are the properties of an object on which the places of its members depend.
type facts struct {
	known      bool   // the object is known
	kind       string // the member kind of the object, or that of a Secret or ConfigMap if it has several
	name, key  string // the members name and key of the object
	isVariable bool   // the object has a member value or valueFrom
}

// isOfCredential reports whether the object has the name of a credential.
func (f *facts) isOfCredential() bool { return isCredential(f.name) || isCredential(f.key) }

// factsOf returns the facts about an object, which may be nil.
func factsOf(n *node) facts {
	if n == nil {
		return facts{}
	}
	f := facts{known: true}
	for i, name := range n.names {
		switch value := &n.kids[i]; {
		case name == "kind" && value.kind == jsonraw.String:
			if f.kind != "Secret" && f.kind != "ConfigMap" {
				f.kind = value.text
			}
		case name == "key" && value.kind == jsonraw.String:
			f.key = value.text
		case name == "name" && value.kind == jsonraw.String:
			f.name = value.text
		case name == "value" || name == "valueFrom":
			f.isVariable = true
		}
	}
	return f
}

// member returns the place of a member of the object at p. The value is nil if only its place is known.
func (c *call) member(f facts, p place, name string, value *node) place {
	at := place{name: name, depth: p.depth, refs: p.rule == variable}
	if p.rule == certain || p.rule == likely || p.rule == encoded {
		at.rule = p.rule
	}
	left, done := next(p.paths, name)
	at.paths = left
	if isObjectOf(p, name) {
		at.paths = c.paths
	}
	switch {
	case done:
		at.rule = certain
	case at.rule != byForm:
	default:
		at.rule = c.ruleFor(f, p, name, value)
	}
	return at
}

// isObjectOf reports whether a member is one of the objects of a request.
func isObjectOf(p place, name string) bool {
	return p.name == "request" && p.depth == 0 && (name == "object" || name == "oldObject")
}

// ruleFor returns the rule for a member that inherits none.
func (c *call) ruleFor(f facts, p place, name string, value *node) rule {
	if r := c.ruleOfData(f.kind, p, name); r != byForm {
		return r
	}
	isText := value == nil || value.isText() || isTextList(value)
	switch {
	case name == "patch" && p.name == "response": // it could not be parsed
		return certain
	case name == "extra" && value != nil && isExtra(value):
		return certain
	case p.rule == variable:
		return ruleOfVariable(f, p, name, value)
	case isText && isCredential(name):
		if value != nil && isPlural(name) && quantity().MatchString(value.text) {
			return byForm // a number of them
		}
		return certain
	case isText && name == "value" && (!f.known && p.item || f.isOfCredential()):
		return certain
	case isText && valueNames[name] && isCredential(p.name):
		return certain
	case name == "auth" && value != nil && isBasicAuth(value.text): // of an image registry
		return certain
	case isCredential(name) && isPlural(name) && isMapOfTexts(value):
		return likely
	case name == "args" || name == "command":
		return argument
	}
	if is, loose := isEnvironment(name); is && p.name != "properties" && canBeEnvironment(value, loose) {
		return variable
	}
	return byForm
}

// canBeEnvironment reports whether a value can be a list or map of environment variables. loose is true if the name of
// the field also has other meanings.
func canBeEnvironment(value *node, loose bool) bool {
	switch {
	case value == nil:
		return true
	case value.isText():
		return false
	}
	return !loose || value.kind == jsonraw.Array || allVariables(value)
}

// ruleOfData returns the rule for the data of Secrets and ConfigMaps.
func (c *call) ruleOfData(kind string, p place, name string) rule {
	inObject := (p.name == "object" || p.name == "oldObject") && p.depth == 0 && !p.item && c.request != nil
	if kind == "" && inObject {
		kind = c.request.member("kind").str("kind")
	}
	switch {
	case name == "stringData":
		return certain
	case kind == "Secret" && name == "data", kind == "ConfigMap" && name == "binaryData":
		return encoded
	case kind == "ConfigMap" && name == "data":
		return likely
	}
	return byForm
}

// ruleOfVariable returns the rule for a member of an object in a list or map of environment variables.
func ruleOfVariable(f facts, p place, name string, value *node) rule {
	isEntry := p.item || f.isVariable
	switch {
	case value != nil && !value.isText():
		if isEntry {
			return byForm
		}
		return variable
	case isEntry && name != "value":
		return byForm
	case isEntry && f.isOfCredential(), isCredential(name):
		return certain
	}
	return likely
}

// valueNames are the names of fields that hold the value of the credential that the field around them names.
var valueNames = setOf("value values data text content plain plaintext plainText literal inline")

// isMapOfTexts reports whether a value is a map of strings, and not a reference to another object.
func isMapOfTexts(n *node) bool {
	if n == nil || n.kind != jsonraw.Object || len(n.kids) == 0 {
		return false
	}
	for i, name := range n.names {
		if n.kids[i].kind != jsonraw.String || isPublic(name) || name == "key" {
			return false
		}
	}
	return true
}

// isTextList reports whether a value is an array of strings.
func isTextList(n *node) bool {
	return n.kind == jsonraw.Array && len(n.kids) > 0 && n.kids[0].kind == jsonraw.String
}

// isExtra reports whether a value is a map of lists of strings, as the extra of a user is.
func isExtra(n *node) bool {
	if n.kind != jsonraw.Object {
		return false
	}
	for i := range n.kids {
		if kind := n.kids[i].kind; kind != jsonraw.Array && kind != jsonraw.Null {
			return false
		}
	}
	return true
}

func allVariables(n *node) bool {
	for _, name := range n.names {
		if !isVariable(name) {
			return false
		}
	}
	return len(n.names) > 0
}

func (c *call) walkNumber(n *node, p place) {
	if p.rule == certain || p.rule == likely {
		n.text, n.done = c.number(n.text), true
	}
}

func (c *call) walkString(n *node, p place) {
	switch p.rule {
	case certain, likely:
		n.text, n.done = c.whole(n.text, p.rule == certain, p.refs), true
	case encoded:
		n.text, n.done = c.encoded(n.text), true
	case variable: // of a list such as ["NAME=value"]
		if name, value, ok := strings.Cut(n.text, "="); ok {
			n.text, n.done = name+"="+c.whole(value, isCredential(name), true), true
			return
		}
		c.form(n, p)
	default:
		c.form(n, p)
	}
}

// form replaces the secrets in a string that can be recognized by their form, also in a document inside the string.
func (c *call) form(n *node, p place) {
	if p.depth < maxNested {
		if text := strings.TrimSpace(n.text); strings.HasPrefix(text, "{") || strings.HasPrefix(text, "[") {
			nodes := c.parser.nodes
			if doc, err := c.parser.parse([]byte(text)); err == nil && len(doc.kids) > 0 {
				n.nested = doc
				c.walk(doc, place{name: p.name, depth: p.depth + 1, paths: c.paths})
				return
			}
			c.parser.nodes = nodes
		}
	}
	if p.name == lastApplied {
		n.text, n.done = c.pseudonym(n.text, true), true // a document that is not valid JSON
		return
	}
	kind := prose
	switch {
	case p.rule == argument:
		kind = arguments
	case isPublic(p.name) || strings.HasPrefix(n.text, "system:"):
		kind = identifier
	}
	n.text = c.scrub(n.text, kind)
}

// whole returns the pseudonym of a value. With refs true, it keeps references to environment variables.
func (c *call) whole(text string, certain, refs bool) string {
	if harmless(text) {
		return text
	}
	if !refs || !strings.Contains(text, "$(") {
		return c.pseudonym(text, certain)
	}
	var out strings.Builder
	for text != "" {
		start := strings.Index(text, "$(")
		end := -1
		if start >= 0 {
			end = strings.IndexByte(text[start:], ')')
		}
		if end < 0 || !isReference(text[start+2:start+end]) {
			out.WriteString(c.pseudonym(text, certain))
			break
		}
		if start > 0 {
			out.WriteString(c.pseudonym(text[:start], certain))
		}
		out.WriteString(text[start : start+end+1])
		text = text[start+end+1:]
	}
	return out.String()
}

// isReference reports whether a text is the name of an environment variable.
func isReference(name string) bool {
	return name != "" && len(name) <= 64 && strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == ""
}

// encoded returns the base64 of the pseudonym of the value that base64 encodes.
func (c *call) encoded(text string) string {
	plain, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return c.pseudonym(text, true)
	}
	if harmless(string(plain)) {
		return text
	}
	return base64.StdEncoding.EncodeToString([]byte(c.pseudonym(string(plain), true)))
}
