// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/admitkit/admitkit/internal/jsonraw"
)

// An Error reports a value that does not fit its Go type.
type Error struct {
	// Path leads to the value.
	Path []Step
	// Offset is the number of bytes before the value.
	Offset int
	// Err is the cause. It does not quote the value, which may be a secret, unless the type's own decoder
	// does.
	Err error
}

// A Step leads to the member called Name, or to element Index if IsIndex is set.
type Step struct {
	Name    string
	Index   int
	IsIndex bool
}

func (e *Error) Error() string { return e.Err.Error() }

func (e *Error) Unwrap() error { return e.Err }

// Pointer returns a path as a JSON pointer (RFC 6901).
func Pointer(path []Step) string {
	var b strings.Builder
	for _, s := range path {
		b.WriteByte('/')
		if s.IsIndex {
			b.WriteString(strconv.Itoa(s.Index))
		} else {
			b.WriteString(escapeToken.Replace(s.Name))
		}
	}
	return b.String()
}

var escapeToken = strings.NewReplacer("~", "~0", "/", "~1")

func at(name string, err error) error { return within(Step{Name: name}, err) }

func atIndex(i int, err error) error { return within(Step{Index: i, IsIndex: true}, err) }

// within adds a step to the path of an error. The innermost step is the first, until At reverses the path.
func within(s Step, err error) error {
	var e *Error
	if errors.As(err, &e) {
		e.Path = append(e.Path, s)
	}
	return err
}

// nullOr skips a null. For any other value it returns an error, because the decoder wants a null or a value of kind
// want.
func (d *decoder) nullOr(want string) error {
	kind, start := d.c.Kind(), d.c.Offset()
	if err := d.c.Skip(); err != nil || kind == jsonraw.Null {
		return err
	}
	return &Error{Offset: start, Err: fmt.Errorf("want %s, got %s", want, kind)}
}
