// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admitkit/admitkit/internal/jsonraw"
)

// An ObjectReader reads the new object while [Decode] reads the review around it.
type ObjectReader interface {
	// ReadObject reads the object that begins at an offset of body, inside two JSON objects, and returns the
	// offset of its end. It is not called for null. If the request has two members called object, it is called
	// twice, and the last object counts. The kind may follow later in the body, so an object that does not
	// fit the reader's type is not an error here. An object that is not JSON is an error and ends the pass.
	ReadObject(body []byte, offset int) (end int, err error)
}

// Decode reads a review into the target's fields. They must be zero, except that UserInfo.Groups may be an empty list
// with spare capacity. If object is not nil, it reads the new object in the same pass. The documents of the request
// share memory with body. Every error is an [*Error].
func Decode(to Target, body []byte, object ObjectReader) error {
	p := piecePool.Get().(*pieces)
	d := decoder{c: jsonraw.At(body, 0, 0), body: body, to: to, reader: object, pieces: p}
	err := d.envelope()
	if err == nil {
		err = d.c.End()
	}
	if err == nil {
		err = d.check()
	}
	piecePool.Put(p)
	if err != nil {
		return d.fail(err)
	}
	d.fillRequestForm()
	return nil
}

type decoder struct {
	c          jsonraw.Cursor
	body       []byte
	to         Target
	reader     ObjectReader
	pieces     *pieces
	apiVersion string
	kind       string
	hasRequest bool
}

func (d *decoder) envelope() error {
	if d.c.Kind() != jsonraw.Object {
		if err := d.c.Skip(); err != nil {
			return err
		}
		return ErrNotReview
	}
	return d.members(reviewNames, func(place int) error {
		switch place {
		case inReviewKind:
			return d.text(&d.kind)
		case inReviewAPIVersion:
			return d.text(&d.apiVersion)
		default: // inReviewRequest
			if d.hasRequest = d.c.Kind() != jsonraw.Null; !d.hasRequest {
				*d.to.Version, *d.to.Metadata = "", Metadata{}
				*d.to.Object, *d.to.OldObject, *d.to.Options = nil, nil, nil
			}
			return d.object(requestNames, d.request)
		}
	})
}

// check validates the review as a whole. It runs after the pass, because the members may come in any order.
func (d *decoder) check() error {
	*d.to.Version = d.version()
	switch {
	case d.kind != Kind:
		return fmt.Errorf("%w: kind is %q", ErrNotReview, d.kind)
	case *d.to.Version == "":
		return within("apiVersion", fmt.Errorf("%w: %q is neither %s nor %s", ErrVersion, d.apiVersion, Group+"/"+V1, Group+"/"+V1beta1))
	case !d.hasRequest:
		return within("request", ErrNoRequest)
	case d.to.Metadata.UID == "":
		return within("request", within("uid", ErrNoUID))
	}
	return nil
}

func (d *decoder) version() string {
	switch d.apiVersion {
	case Group + "/" + V1:
		return V1
	case Group + "/" + V1beta1:
		return V1beta1
	}
	return ""
}

func (d *decoder) fillRequestForm() {
	r := d.to.Metadata
	if r.RequestKind == (metav1.GroupVersionKind{}) {
		r.RequestKind = r.Kind
	}
	if r.RequestResource == (metav1.GroupVersionResource{}) {
		r.RequestResource = r.Resource
	}
	if r.RequestSubResource == "" { // the API server always sends equal values (CreateV1AdmissionReview)
		r.RequestSubResource = r.SubResource
	}
}

func (d *decoder) request(place int) error {
	r := d.to.Metadata
	switch place {
	case inRequestUID:
		return d.text((*string)(&r.UID))
	case inRequestKind:
		return d.gvk(&r.Kind)
	case inRequestResource:
		return d.gvr(&r.Resource)
	case inRequestSubResource:
		return d.text(&r.SubResource)
	case inRequestRequestKind:
		reset(d, &r.RequestKind)
		return d.gvk(&r.RequestKind)
	case inRequestRequestResource:
		reset(d, &r.RequestResource)
		return d.gvr(&r.RequestResource)
	case inRequestRequestSubResource:
		return d.text(&r.RequestSubResource)
	case inRequestName:
		return d.text(&r.Name)
	case inRequestNamespace:
		return d.text(&r.Namespace)
	case inRequestOperation:
		return d.text((*string)(&r.Operation))
	case inRequestUserInfo:
		return d.object(userNames, d.userInfo)
	case inRequestObject:
		return d.newObject()
	case inRequestOldObject:
		return d.raw(d.to.OldObject)
	case inRequestDryRun:
		return d.boolean(&r.DryRun)
	default: // inRequestOptions
		return d.raw(d.to.Options)
	}
}

func (d *decoder) gvk(gvk *metav1.GroupVersionKind) error {
	return remembered(d, &d.pieces.kind, gvk, func() error {
		return d.texts(kindNames, &gvk.Group, &gvk.Version, &gvk.Kind)
	})
}

func (d *decoder) gvr(gvr *metav1.GroupVersionResource) error {
	return remembered(d, &d.pieces.resource, gvr, func() error {
		return d.texts(resourceNames, &gvr.Group, &gvr.Version, &gvr.Resource)
	})
}

func (d *decoder) userInfo(place int) error {
	u := &d.to.Metadata.UserInfo
	switch place {
	case inUserUsername:
		return d.text(&u.Username)
	case inUserUID:
		return d.text(&u.UID)
	case inUserGroups:
		return d.list(&u.Groups)
	default: // inUserExtra
		return d.extra(u)
	}
}

func (d *decoder) extra(u *authenticationv1.UserInfo) error {
	if d.c.Kind() == jsonraw.Null {
		u.Extra = nil
	} else if u.Extra == nil {
		u.Extra = map[string]authenticationv1.ExtraValue{}
	}
	if d.c.Kind() != jsonraw.Object {
		return d.nullOr(jsonraw.Object)
	}
	more, err := d.c.OpenObject()
	for more && err == nil {
		var key []byte
		if key, err = d.c.Name(); err != nil {
			return err
		}
		var values []string
		err = within(string(key), d.list(&values))
		u.Extra[d.pieces.text(key)] = values
		if err == nil {
			more, err = d.c.NextMember()
		}
	}
	return err
}

// newObject reads request.object, with the reader if there is one.
func (d *decoder) newObject() error {
	kind, start := d.c.Kind(), d.c.Offset()
	if d.reader == nil || kind == jsonraw.Null || kind == jsonraw.Invalid {
		return d.raw(d.to.Object)
	}
	end, err := d.reader.ReadObject(d.body, start)
	switch {
	case err != nil:
		return notJSON(err)
	case end <= start || end > len(d.body):
		return fmt.Errorf("%w: the object at byte %d was read up to byte %d of %d", ErrSyntax, start, end, len(d.body))
	}
	d.c = jsonraw.At(d.body, end, objectDepth)
	*d.to.Object = d.c.Since(start)
	return nil
}

// notJSON turns a reader's error into a syntax error.
func notJSON(err error) error {
	if syntax := (*jsonraw.SyntaxError)(nil); errors.As(err, &syntax) {
		return syntax
	}
	return fmt.Errorf("%w: %w", ErrSyntax, err)
}

// objectDepth is the number of JSON objects around request.object.
const objectDepth = 2

// reset zeroes dst if the next value is null. It is only for pointers and lists: for null in any other field,
// sigs.k8s.io/json keeps the value of an earlier member with the same name.
func reset[T any](d *decoder, dst *T) {
	if d.c.Kind() == jsonraw.Null {
		var zero T
		*dst = zero
	}
}

// object reads an object or null. It calls member with the index of each known name, and member reads the
// value.
func (d *decoder) object(names *jsonraw.Names, member func(place int) error) error {
	if d.c.Kind() != jsonraw.Object {
		return d.nullOr(jsonraw.Object)
	}
	return d.members(names, member)
}

func (d *decoder) members(names *jsonraw.Names, member func(place int) error) error {
	more, err := d.c.OpenObject()
	for place := -1; more && err == nil; {
		if place, more, err = names.Next(&d.c, place+1); !more || err != nil {
			break
		}
		if err = member(place); err != nil {
			return within(names.Name(place), err)
		}
		more, err = d.c.NextMember()
	}
	return err
}

// texts reads an object whose members are strings, or null.
func (d *decoder) texts(names *jsonraw.Names, texts ...*string) error {
	return d.object(names, func(place int) error { return d.text(texts[place]) })
}

func (d *decoder) text(dst *string) error {
	if d.c.Kind() != jsonraw.String {
		return d.nullOr(jsonraw.String)
	}
	text, err := d.c.TextBytes()
	if err == nil {
		*dst = d.pieces.text(text)
	}
	return err
}

// list reads a list of strings into dst. If an earlier member with the same name has filled dst, a null
// element keeps the earlier element.
func (d *decoder) list(dst *[]string) error {
	reset(d, dst)
	if d.c.Kind() != jsonraw.Array {
		return d.nullOr(jsonraw.Array)
	}
	list := (*dst)[:0]
	more, err := d.c.OpenArray()
	for i := 0; more && err == nil; i++ {
		if i == cap(list) {
			list = slices.Grow(list, max(i, 4))
		}
		list = list[:i+1]
		if err = d.text(&list[i]); err != nil {
			return within(strconv.Itoa(i), err)
		}
		more, err = d.c.NextElement()
	}
	if len(list) == 0 {
		list = []string{}
	}
	*dst = list
	return err
}

func (d *decoder) boolean(dst *bool) error {
	reset(d, dst)
	if d.c.Kind() != jsonraw.Bool {
		return d.nullOr(jsonraw.Bool)
	}
	raw, err := d.c.Value()
	*dst = string(raw) == "true"
	return err
}

func (d *decoder) raw(dst *[]byte) error {
	raw, err := d.c.Value()
	if !jsonraw.IsNull(raw) {
		*dst = raw
	}
	return err
}

// nullOr skips a null. For any other value it returns an error, because the decoder wants a null or a value of kind
// want.
func (d *decoder) nullOr(want jsonraw.Kind) error {
	kind, at := d.c.Kind(), d.c.Offset()
	if err := d.c.Skip(); err != nil || kind == jsonraw.Null {
		return err
	}
	return &fault{offset: at, err: fmt.Errorf("%w: want %s, got %s", ErrShape, want, kind)}
}

// fail converts err to an [*Error]. If err is a fault, the [*Error] has its path and offset.
func (d *decoder) fail(err error) error {
	e := &Error{Version: d.version(), UID: d.to.Metadata.UID, Offset: d.c.Offset(), Err: err}
	if f, ok := err.(*fault); ok { //nolint:errorlint // a fault is never wrapped
		slices.Reverse(f.path)
		e.Path, e.Err = f.path, f.err
		if errors.Is(f.err, ErrShape) {
			e.Offset = f.offset
		}
	}
	var syntax *jsonraw.SyntaxError
	if errors.As(e.Err, &syntax) {
		e.Offset, e.Err = syntax.Offset, fmt.Errorf("%w: %w", ErrSyntax, syntax)
	}
	return e
}
