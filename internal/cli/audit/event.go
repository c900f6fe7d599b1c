// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bytes"
	"errors"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/admitkit/admitkit/internal/jsonraw"
)

var (
	errNotJSON  = errors.New("not JSON")
	errNotEvent = errors.New("valid JSON, but not an audit.k8s.io Event")
)

// These are the fields of an event that are read, in the order in which the API server writes them.
const (
	inKind = iota
	inAPIVersion
	inLevel
	inAuditID
	inStage
	inRequestURI
	inVerb
	inUser
	inImpersonated
	inObjectRef
	inResponse
	inRequestObject
	inReceived
	inAnnotations
	inItems
	members
)

var memberNames = sync.OnceValue(func() *jsonraw.Names {
	return jsonraw.NewNames("kind", "apiVersion", "level", "auditID", "stage", "requestURI", "verb", "user", "impersonatedUser",
		"objectRef", "responseStatus", "requestObject", "requestReceivedTimestamp", "annotations", "items")
})

// A raw is an audit event whose fields are undecoded JSON.
type raw struct {
	member [members][]byte
}

// split parses a line of a log and calls visit with each event in it. A line is one event or an EventList. For a
// malformed line, split returns an error and does not call visit.
func split(line []byte, visit func(*raw)) error {
	var r raw
	c := jsonraw.At(line, 0, 0)
	if err := r.read(&c); err != nil || c.End() != nil {
		return errNotJSON
	}
	if !bytes.HasPrefix(r.member[inAPIVersion], []byte(`"audit.k8s.io/`)) {
		return errNotEvent
	}
	switch string(r.member[inKind]) {
	case `"Event"`:
		visit(&r)
		return nil
	case `"EventList"`: // the form that an audit webhook receives
		if r.member[inItems] == nil {
			return errNotEvent
		}
		if err := eachItem(r.member[inItems], func(*raw) {}); err != nil {
			return err
		}
		return eachItem(r.member[inItems], visit)
	}
	return errNotEvent
}

func eachItem(list []byte, visit func(*raw)) error {
	items := jsonraw.NewCursor(list)
	err := items.Elements(func(int) error {
		var item raw
		if err := item.read(items); err != nil {
			return err
		}
		visit(&item)
		return nil
	})
	if err != nil {
		return errNotEvent
	}
	return nil
}

func (r *raw) read(c *jsonraw.Cursor) error {
	names := memberNames()
	more, err := c.OpenObject()
	for place := -1; more && err == nil; {
		if place, more, err = names.Next(c, place+1); !more || err != nil {
			break
		}
		if r.member[place], err = c.Value(); err != nil {
			break
		}
		more, err = c.NextMember()
	}
	return err
}

// finished reports whether the event is the last one of its request.
func (r *raw) finished() bool {
	stage := string(r.member[inStage])
	return stage == `"ResponseComplete"` || stage == `"Panic"`
}

// A request describes an API request with the facts from its last audit event.
type request struct {
	auditID, verb, user, level string
	time                       time.Time
	object                     object
	code                       int
	message                    string
	dryRun, panicked           bool
	calls                      []*call // of mutating webhooks, in order
	openValidating             []string
	own                        []note
	certificates               []note
	policies                   []policyKey   // with failed validations that are only audited
	mutating, validating       time.Duration // 0 if not recorded
	sent                       []byte        // the whole object in the request, nil if it is not known
	change                     []byte        // body of a PATCH, nil if it is not known
	unread                     int           // number of annotations of the API server that could not be decoded
}

// An object identifies the object of a request.
type object struct{ group, resource, subresource, namespace, name, uid string }

func (o object) String() string {
	kind := o.resource
	if o.group != "" {
		kind += "." + o.group
	}
	if o.subresource != "" {
		kind += "/" + o.subresource
	}
	switch {
	case o.namespace != "" && o.name != "":
		return kind + " " + o.namespace + "/" + o.name
	case o.namespace != "":
		return kind + " in " + o.namespace
	}
	return strings.TrimSpace(kind + " " + o.name)
}

// stored reports whether the request changed an existing object in storage. Later requests then see the changes of the
// webhooks.
func (q *request) stored() bool {
	return !q.dryRun && (q.verb == "update" || q.verb == "patch") && q.code >= 200 && q.code < 300 && q.code != 201
}

// request decodes the needed fields of an event.
func (r *raw) request() *request {
	q := &request{
		auditID:  text(r.member[inAuditID]),
		verb:     text(r.member[inVerb]),
		level:    text(r.member[inLevel]),
		user:     inside(r.member[inUser], "username")["username"],
		panicked: string(r.member[inStage]) == `"Panic"`,
	}
	q.time = r.time()
	if as := inside(r.member[inImpersonated], "username")["username"]; as != "" {
		q.user = as + " (" + q.user + ")"
	}
	ref := inside(r.member[inObjectRef], "resource", "namespace", "name", "uid", "apiGroup", "subresource")
	q.object = object{ref["apiGroup"], ref["resource"], ref["subresource"], ref["namespace"], ref["name"], ref["uid"]}
	status := inside(r.member[inResponse], "message", "code")
	q.message = status["message"]
	q.code, _ = strconv.Atoi(status["code"])
	q.dryRun = dryRun(text(r.member[inRequestURI]))
	switch q.verb {
	case "create", "update":
		q.sent = r.member[inRequestObject]
	case "patch":
		q.change = r.member[inRequestObject]
	}
	q.annotate(r.member[inAnnotations])
	return q
}

// time returns the time at which the request was received, or the zero time if the event does not have it.
func (r *raw) time() time.Time {
	at, err := time.Parse(time.RFC3339Nano, text(r.member[inReceived]))
	if err != nil {
		return time.Time{}
	}
	return at.UTC()
}

func dryRun(uri string) bool {
	_, query, _ := strings.Cut(uri, "?")
	if !strings.Contains(query, "dryRun") {
		return false
	}
	values, _ := url.ParseQuery(query) // on an error, values has the valid parameters
	return len(values["dryRun"]) > 0
}

// text decodes a JSON string. It returns "" for other values.
func text(value []byte) string {
	if len(value) < 2 || value[0] != '"' {
		return ""
	}
	if plain := value[1 : len(value)-1]; bytes.IndexByte(plain, '\\') < 0 && utf8.Valid(plain) {
		return string(plain)
	}
	c := jsonraw.At(value, 0, 0)
	t, _ := c.TextBytes() // split has checked the syntax
	return string(t)
}

// inside returns the strings and numbers in the named fields of a JSON object, by field name.
func inside(value []byte, names ...string) map[string]string {
	found := map[string]string{}
	_ = each(value, func(name string, member []byte) {
		for _, wanted := range names {
			if name != wanted {
				continue
			}
			if member[0] == '"' {
				found[name] = text(member)
			} else {
				found[name] = string(member)
			}
		}
	})
	return found
}

// each calls visit for each field of a JSON object. For any other value, it does nothing.
func each(value []byte, visit func(name string, member []byte)) error {
	if len(value) == 0 || value[0] != '{' {
		return nil
	}
	c := jsonraw.At(value, 0, 0)
	more, err := c.OpenObject()
	for more && err == nil {
		var name, member []byte
		if name, err = c.Name(); err != nil {
			break
		}
		key := string(name)
		if member, err = c.Value(); err != nil {
			break
		}
		visit(key, member)
		more, err = c.NextMember()
	}
	return err
}

// silent reports whether the event has no trace of a webhook or of a policy. It runs for all events, so it does not allocate.
func (r *raw) silent() bool {
	if status := r.member[inResponse]; bytes.Contains(status, []byte("admission webhook ")) || bytes.Contains(status, []byte("failed calling webhook ")) || mayNamePolicy(status) {
		return false
	}
	annotations := r.member[inAnnotations]
	if len(annotations) == 0 || annotations[0] != '{' {
		return true
	}
	c := jsonraw.At(annotations, 0, 0)
	more, err := c.OpenObject()
	for more && err == nil {
		var name []byte
		if name, err = c.Name(); err != nil || mayBeWebhook(name) {
			return false
		}
		if err = c.Skip(); err == nil {
			more, err = c.NextMember()
		}
	}
	return true
}

// mayBeWebhook reports whether an annotation with this key may come from a webhook or a policy.
func mayBeWebhook(key []byte) bool {
	domain, _, ok := bytes.Cut(key, []byte("/"))
	switch {
	case !ok:
		return false
	case string(key) == auditedKey:
		return true
	case bytes.HasSuffix(domain, []byte("webhook.admission.k8s.io")) || bytes.HasSuffix(domain, []byte(certificateInfix[:len(certificateInfix)-1])):
		return true
	case string(domain) == latencyPrefix[:len(latencyPrefix)-1]:
		return bytes.HasSuffix(key, []byte("-webhook"))
	}
	return !reserved(domain)
}
