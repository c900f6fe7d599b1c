// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
)

// find stands for the one that is generated for a package, which calls the same methods.
func find(_ context.Context, _ string, f *hookList) error {
	return errors.Join(
		f.all(nil, errors.New("there is no package")),
		f.result("Function")(nil, nil),
		f.variable("Variable", nil),
	)
}
