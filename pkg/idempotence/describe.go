// SPDX-License-Identifier: Apache-2.0

package idempotence

// An explanation has the texts that a report prints for a finding.
type explanation struct {
	requests []string // what each request is about
	from, to string   // names of the two objects that the difference compares
	cause    string
	fix      string
}

// A description has the texts that a report prints for a law. An entry of modes replaces the texts for one failure
// mode. Fields that the entry does not set keep the texts of the law.
type description struct {
	name      string
	statement string
	explanation
	modes map[FailureMode]explanation
}

// explain returns the texts for a law that fails in the given mode.
func explain(law Law, mode FailureMode) explanation {
	d := descriptions[law]
	of := d.modes[mode]
	if mode == FailureHangs {
		of = lawL2.modes[mode] // a webhook that hangs has the same cause and fix in every law
	}
	e := d.explanation
	if of.requests != nil {
		e.requests = of.requests
	}
	if of.cause != "" {
		e.cause = of.cause
	}
	if of.fix != "" {
		e.fix = of.fix
	}
	switch other, ok := objectsCompared[mode]; {
	case of.from != "":
		e.from, e.to = of.from, of.to
	case e.from != "":
	case ok:
		e.from, e.to = other[0], other[1]
	default:
		e.from, e.to = "one call", "the next call"
	}
	return e
}

// Title returns the law's name and number, such as "late additions (L4b)". Reports use it.
func (l Law) Title() string { return descriptions[l].name + " (" + string(l) + ")" }

// Statement returns what the law demands, in a sentence.
func (l Law) Statement() string { return descriptions[l].statement }

// objectsCompared names the two objects of a difference, by failure mode. It is used for laws that do not name the
// objects themselves.
var objectsCompared = map[FailureMode][2]string{
	FailureRemoves:        {"the object as it was sent", "the result of the webhook"},
	FailureOverwrites:     {"the object as it was sent", "the result of the webhook"},
	FailureRemovesSample:  {"the object as it was sent", "the result of the webhook"},
	FailureOverwritesZero: {"the object as it was sent", "the result of the webhook"},
}

var descriptions = map[Law]description{
	L1:  lawL1,
	L2:  lawL2,
	L3:  lawL3,
	L4a: lawL4a,
	L4b: lawL4b,
	L5:  lawL5,
	L6:  lawL6,
	L7:  lawL7,
	L8:  lawL8,
	L9:  lawL9,
	L10: lawL10,
	L11: lawL11,
	L12: lawL12,
}
