// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"errors"
	"sync"

	"github.com/admitkit/admitkit/pkg/review"
)

// documents are the JSON documents of a Request as received, nil where the review has none. Copies
// of a Request share them. They lie in memory that is reused after the call, so end removes them.
type documents struct {
	mu                         sync.Mutex
	object, oldObject, options []byte
	over                       bool
}

func (d *documents) begin(wire *review.Request) {
	d.object, d.oldObject, d.options = wire.Object, wire.OldObject, wire.Options
}

// open locks the documents until close is called. A Request that a test created has none.
func (d *documents) open() *documents {
	if d == nil {
		return &documents{}
	}
	d.mu.Lock()
	return d
}

func (d *documents) close() {
	if d != nil {
		d.mu.Unlock()
	}
}

// end removes the documents.
func (d *documents) end() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.object, d.oldObject, d.options, d.over = nil, nil, nil, true
}

// gone returns an error after end. It must be called between open and close.
func (d *documents) gone() error {
	if d != nil && d.over {
		return errors.New("the request is over: ask for its old object and options before the handler returns")
	}
	return nil
}
