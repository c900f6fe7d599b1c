// SPDX-License-Identifier: Apache-2.0

package certs

import "errors"

// readiness returns why calls would fail now: other troubles are not a reason to take a
// replica out of service.
func (s Status) readiness() error {
	if s.Trusted {
		return nil
	}
	if s.Err != nil {
		return s.Err
	}
	return errors.New("the certificate that is served is not trusted by the caBundles yet")
}
