// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
)

// find is a stand-in for the generated function, which calls the same methods.
func find(_ context.Context, _ string, f *hookList) error {
	return errors.Join(
		f.all(nil, errors.New("there is no package")),
		f.result("Function")(nil, nil),
		f.variable("Variable", nil),
	)
}
