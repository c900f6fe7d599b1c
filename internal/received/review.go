// SPDX-License-Identifier: Apache-2.0

// Package received decodes reviews and objects into the types of pkg/review and pkg/patch. It can do two
// things that those packages do not offer, because only pkg/webhook needs them: it decodes an object while it
// reads the review around the object, and it reuses memory from call to call.
package received

import (
	"errors"

	"github.com/admitkit/admitkit/internal/wire"
	"github.com/admitkit/admitkit/pkg/review"
)

// Review decodes a review into req as [review.Decode] does. req must be zero, except that UserInfo.Groups may be an
// empty list with spare capacity. If object is not nil, it reads the new object in the same pass.
func Review(req *review.Request, body []byte, object wire.ObjectReader) error {
	err := wire.Decode(wire.Target{
		Version: (*string)(&req.Version), Metadata: (*wire.Metadata)(&req.Metadata),
		Object: &req.Object, OldObject: &req.OldObject, Options: &req.Options,
	}, body, object)
	if err == nil {
		return nil
	}
	var e *wire.Error
	if !errors.As(err, &e) {
		return err
	}
	located := &review.Error{Version: review.Version(e.Version), UID: e.UID, Offset: e.Offset, Err: e.Err}
	for _, name := range e.Path {
		located.Pointer = located.Pointer.Append(name)
	}
	return located
}
