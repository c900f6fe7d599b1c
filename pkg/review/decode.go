// SPDX-License-Identifier: Apache-2.0

package review

import (
	"errors"
	"fmt"
	"slices"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/admitkit/admitkit/internal/jsonraw"
)

// Decode reads an AdmissionReview in one validating pass. Unknown members are ignored, names
// are case-sensitive, of duplicate names the last one counts (objects and lists merge), and
// null is as good as absent: what sigs.k8s.io/json does for the API server.
//
// The request shares memory with body, which must not change while it is in use. Every error
// is an [*Error]; it holds the version and uid as far as they could be read.
func Decode(body []byte) (*Request, error) {
	d := decoder{c: jsonraw.NewCursor(body)}
	err := d.envelope()
	if err == nil {
		err = d.c.End()
	}
	if err == nil {
		err = d.check()
	}
	if err != nil {
		return nil, d.fail(err)
	}
	d.fillRequestForm()
	return &d.req, nil
}

type decoder struct {
	c          *jsonraw.Cursor
	req        Request
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
	return d.c.Members(func(name string) error {
		switch name {
		case "apiVersion":
			return within(name, d.text(&d.apiVersion))
		case "kind":
			return within(name, d.text(&d.kind))
		case "request":
			if d.c.Kind() == jsonraw.Null {
				d.hasRequest = false
				d.req = Request{}
				return d.c.Skip()
			}
			d.hasRequest = true
			return within(name, d.object(d.request))
		}
		return d.c.Skip()
	})
}

// check runs after the pass, since members come in any order.
func (d *decoder) check() error {
	switch {
	case d.kind != reviewKind:
		return fmt.Errorf("%w: kind is %q", ErrNotReview, d.kind)
	case d.apiVersion != V1.APIVersion() && d.apiVersion != V1beta1.APIVersion():
		return within("apiVersion", fmt.Errorf("%w: %q is neither %s nor %s", ErrVersion, d.apiVersion, V1.APIVersion(), V1beta1.APIVersion()))
	case !d.hasRequest:
		return within("request", ErrNoRequest)
	case d.req.UID == "":
		return within("request", within("uid", ErrNoUID))
	}
	d.req.Version = d.version()
	return nil
}

func (d *decoder) version() Version {
	switch d.apiVersion {
	case V1.APIVersion():
		return V1
	case V1beta1.APIVersion():
		return V1beta1
	}
	return ""
}

func (d *decoder) fillRequestForm() {
	r := &d.req
	if r.RequestKind == (metav1.GroupVersionKind{}) {
		r.RequestKind = r.Kind
	}
	if r.RequestResource == (metav1.GroupVersionResource{}) {
		r.RequestResource = r.Resource
	}
	if r.RequestSubResource == "" { // the two are always equal where both are sent (CreateV1AdmissionReview)
		r.RequestSubResource = r.SubResource
	}
}

func (d *decoder) request(name string) error {
	r := &d.req
	switch name {
	case "uid":
		return d.text((*string)(&r.UID))
	case "kind":
		return d.object(d.gvk(&r.Kind))
	case "resource":
		return d.object(d.gvr(&r.Resource))
	case "subResource":
		return d.text(&r.SubResource)
	case "requestKind":
		reset(d, &r.RequestKind)
		return d.object(d.gvk(&r.RequestKind))
	case "requestResource":
		reset(d, &r.RequestResource)
		return d.object(d.gvr(&r.RequestResource))
	case "requestSubResource":
		return d.text(&r.RequestSubResource)
	case "name":
		return d.text(&r.Name)
	case "namespace":
		return d.text(&r.Namespace)
	case "operation":
		return d.text((*string)(&r.Operation))
	case "userInfo":
		return d.object(d.userInfo)
	case "dryRun":
		return d.boolean(&r.DryRun)
	case "object":
		return d.raw(&r.Object)
	case "oldObject":
		return d.raw(&r.OldObject)
	case "options":
		return d.raw(&r.Options)
	}
	return d.c.Skip()
}

func (d *decoder) gvk(gvk *metav1.GroupVersionKind) func(string) error {
	return func(name string) error {
		switch name {
		case "group":
			return d.text(&gvk.Group)
		case "version":
			return d.text(&gvk.Version)
		case "kind":
			return d.text(&gvk.Kind)
		}
		return d.c.Skip()
	}
}

func (d *decoder) gvr(gvr *metav1.GroupVersionResource) func(string) error {
	return func(name string) error {
		switch name {
		case "group":
			return d.text(&gvr.Group)
		case "version":
			return d.text(&gvr.Version)
		case "resource":
			return d.text(&gvr.Resource)
		}
		return d.c.Skip()
	}
}

func (d *decoder) userInfo(name string) error {
	u := &d.req.UserInfo
	switch name {
	case "username":
		return d.text(&u.Username)
	case "uid":
		return d.text(&u.UID)
	case "groups":
		return d.texts(&u.Groups)
	case "extra":
		if d.c.Kind() == jsonraw.Null {
			u.Extra = nil
			return d.c.Skip()
		}
		if u.Extra == nil {
			u.Extra = map[string]authenticationv1.ExtraValue{}
		}
		return d.object(func(key string) error {
			var values []string
			err := d.texts(&values)
			u.Extra[key] = values
			return err
		})
	}
	return d.c.Skip()
}

// reset empties dst when the next value is null. Only what is a pointer or a list in the API's
// Go types is emptied by null; anything else keeps what a duplicate of the name has set.
func reset[T any](d *decoder, dst *T) {
	if d.c.Kind() == jsonraw.Null {
		var zero T
		*dst = zero
	}
}

// object reads an object or null; member must read the value of the member it is told of.
func (d *decoder) object(member func(name string) error) error {
	if d.c.Kind() != jsonraw.Object {
		return d.nullOr(jsonraw.Object)
	}
	return d.c.Members(func(name string) error { return within(name, member(name)) })
}

func (d *decoder) text(dst *string) error {
	if d.c.Kind() != jsonraw.String {
		return d.nullOr(jsonraw.String)
	}
	s, err := d.c.Text()
	*dst = s
	return err
}

// texts reads a list over the one that a duplicate of its name has left: a null element is
// then what was there before.
func (d *decoder) texts(dst *[]string) error {
	reset(d, dst)
	if d.c.Kind() != jsonraw.Array {
		return d.nullOr(jsonraw.Array)
	}
	list := (*dst)[:0]
	err := d.c.Elements(func(i int) error {
		list = slices.Grow(list, 1)[:i+1]
		return withinIndex(i, d.text(&list[i]))
	})
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

// nullOr skips a null and refuses any other value where one of this kind is wanted.
func (d *decoder) nullOr(want jsonraw.Kind) error {
	kind, at := d.c.Kind(), d.c.Offset()
	if err := d.c.Skip(); err != nil || kind == jsonraw.Null {
		return err
	}
	return &shapeError{offset: at, text: fmt.Sprintf("want %s, got %s", want, kind)}
}

// fail finishes an error that was collected while unwinding.
func (d *decoder) fail(err error) error {
	e := &Error{Version: d.version(), UID: d.req.UID, Offset: d.c.Offset()}
	for {
		var p *pathError
		if !errors.As(err, &p) {
			break
		}
		e.Pointer, err = e.Pointer.Append(p.name), p.err
	}
	var syntax *jsonraw.SyntaxError
	var shape *shapeError
	switch {
	case errors.As(err, &syntax):
		e.Offset, e.Err = syntax.Offset, fmt.Errorf("%w: %w", ErrSyntax, syntax)
	case errors.As(err, &shape):
		e.Offset, e.Err = shape.offset, fmt.Errorf("%w: %s", ErrShape, shape.text)
	default:
		e.Err = err
	}
	return e
}
