// SPDX-License-Identifier: Apache-2.0

package review

import (
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/admitkit/admitkit/internal/jsonraw"
	"github.com/admitkit/admitkit/internal/wire"
)

// An objectReader is a wire.ObjectReader that skips objects. It records the offset of each object, and the bytes of the
// last one.
type objectReader struct {
	offsets []int
	last    []byte
}

func (r *objectReader) ReadObject(body []byte, offset int) (int, error) {
	c := jsonraw.At(body, offset, 2)
	raw, err := c.Value()
	r.offsets, r.last = append(r.offsets, offset), raw
	return c.Offset(), err
}

// decodeWith decodes body into req with an ObjectReader, as pkg/webhook does. req may bring memory for the groups.
func decodeWith(req *Request, body []byte, object wire.ObjectReader) error {
	if err := wire.Decode(req.target(), body, object); err != nil {
		return located(err)
	}
	return nil
}

// sameWithReader decodes body with an ObjectReader, and checks that the result is the same as without one.
func sameWithReader(t *testing.T, body []byte, want *Request, wantErr error) {
	t.Helper()
	var got Request
	var reader objectReader
	got.UserInfo.Groups = make([]string, 0, 2)
	err := decodeWith(&got, body, &reader)
	if fmt.Sprintf("%#v", err) != fmt.Sprintf("%#v", wantErr) && fmt.Sprint(err) != fmt.Sprint(wantErr) {
		t.Fatalf("%.2000q: with a reader of the object: %v, without: %v", body, err, wantErr)
	}
	if err != nil {
		return
	}
	if len(got.UserInfo.Groups) == 0 && want.UserInfo.Groups == nil {
		got.UserInfo.Groups = nil // the memory that was passed in
	}
	if !reflect.DeepEqual(&got, want) {
		t.Fatalf("%.2000q: with a reader of the object (-without +with)\n-%s\n+%s", body, show(want), show(&got))
	}
	if got.Object != nil && (len(reader.offsets) == 0 || string(reader.last) != string(got.Object)) {
		t.Fatalf("%.2000q: the object is %q, the reader last read %q", body, got.Object, reader.last)
	}
}

func TestReaderGetsEachObject(t *testing.T) {
	for _, row := range []struct {
		reason  reason
		body    string
		offsets []int
	}{
		{because("one object after white space"), v1(`{"uid":"u","object": {}}`), []int{92}},
		{because("the same name again, and the last one counts"), v1(`{"object":{"a":1},"object":{"b":1},"uid":"u"}`), []int{81, 98}},
		{because("not the null after it, which keeps it"), v1(`{"object":{},"object":null,"uid":"u"}`), []int{81}},
		{because("no object"), v1(`{"uid":"u","object":null,"oldObject":{}}`), nil},
		{because("a number too, because the kind may be wrong"), v1(`{"uid":"u","object":1}`), []int{91}},
	} {
		row.reason.run(t, func(t *testing.T) {
			var req Request
			var reader objectReader
			if err := decodeWith(&req, []byte(row.body), &reader); err != nil || !reflect.DeepEqual(reader.offsets, row.offsets) {
				t.Errorf("read at %d, want %d; %v", reader.offsets, row.offsets, err)
			}
		})
	}
}

// A badReader is a wire.ObjectReader that returns a fixed offset and a fixed error, whatever the body is.
type badReader struct {
	end int
	err error
}

func (r badReader) ReadObject([]byte, int) (int, error) { return r.end, r.err }

func TestReaderIsNotTrusted(t *testing.T) {
	body := []byte(v1(`{"uid":"u","object":{}}`))
	for _, row := range []struct {
		reason reason
		reader badReader
		want   string
	}{
		{because("an error of its own"), badReader{err: errors.New("no")}, `cannot read the AdmissionReview: request.object: not JSON: no at byte 91`},
		{because("nothing was read"), badReader{end: 91}, `cannot read the AdmissionReview: request.object: not JSON: the object at byte 91 was read up to byte 91 of 95 at byte 91`},
		{because("an end outside of the body"), badReader{end: 96}, `cannot read the AdmissionReview: request.object: not JSON: the object at byte 91 was read up to byte 96 of 95 at byte 91`},
		{because("an end in the middle of something"), badReader{end: 94}, `cannot read the AdmissionReview: not JSON: unexpected end of JSON after an object member at byte 95`},
	} {
		row.reason.run(t, func(t *testing.T) {
			err := decodeWith(new(Request), body, row.reader)
			var e *Error
			if !errors.As(err, &e) || err.Error() != row.want || !errors.Is(err, ErrSyntax) {
				t.Errorf("(-want +got)\n-%s\n+%v", row.want, err)
			}
		})
	}
}
