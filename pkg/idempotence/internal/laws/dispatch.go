// SPDX-License-Identifier: Apache-2.0

package laws

// A check checks the cases of one law.
type check interface{ check(c *Case) *Finding }

// checkOnRequest checks a case whose object is new or stored as it is.
func (k *Checker) checkOnRequest(c *Case) *Finding {
	if of := k.checkOf(c); of != nil {
		return of.check(c)
	}
	return nil
}

// checkOf returns the check of a case's law and variant, or nil.
func (k *Checker) checkOf(c *Case) check {
	switch c.Variant {
	case AfterCreation:
		return afterCreation{k}
	case DeletionRequest:
		return deletionRequest{k}
	}
	switch c.Law {
	case L1:
		return secondCall{k}
	case L2:
		return noFailure{k}
	case L3:
		return pure{k}
	case L4a:
		return afterEdits{k}
	case L4b:
		return lateAdditions{k}
	case L5:
		return partsThere{k}
	case L6:
		return updates{k}
	case L7:
		return dryRun{k}
	case L8:
		return reviewVersions{k}
	case L9:
		return unknownFields{k}
	case L10:
		return patch{k}
	case L11:
		return order{k}
	case L12:
		return settles{k}
	}
	return nil
}
