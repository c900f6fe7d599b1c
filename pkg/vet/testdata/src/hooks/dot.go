// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"errors"

	. "github.com/admitkit/admitkit/pkg/webhook"
)

func dot(req *Request[pod]) error {
	if req.Object.name == "" {
		return Deny("no name")
	}
	return errors.New("a dot import") // want `does not deny`
}
