// SPDX-License-Identifier: Apache-2.0

package document

// A Size is a document size. Its name is the size of the AdmissionReview that creates a Pod of this Size.
type Size struct {
	Name            string
	containers, env int  // of the Pod
	users           int  // of the Database
	Large           bool // one call takes milliseconds
}

// Sizes lists the sizes to measure, the smallest first.
var Sizes = []Size{{"2KB", 1, 0, 1, false}, {"9KB", 2, 3, 12, false}, {"197KB", 65, 5, 378, false}, {"1.4MB", 468, 5, 2700, true}}

// Pod returns the Pod of this size as an API server encodes it.
func (s Size) Pod() []byte { return MustEncode(Pod(s.containers, s.env)) }
