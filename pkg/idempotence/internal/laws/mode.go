// SPDX-License-Identifier: Apache-2.0

package laws

// A Mode is a way in which a law fails.
type Mode string

// The modes. The comments on the constants of package idempotence with the same values explain them.
const (
	Grows              Mode = "grows"
	Changes            Mode = "changes"
	NoOpPatch          Mode = "no-op patch"
	NeverSettles       Mode = "never settles"
	Invalid            Mode = "invalid"
	InvalidOnWindows   Mode = "invalid on Windows"
	ServerError        Mode = "server error"
	Hangs              Mode = "hangs"
	Denied             Mode = "denied"
	DeniedLater        Mode = "denied later"
	DecidesDifferently Mode = "decides differently"
	Varies             Mode = "varies"
	ReadsNamespace     Mode = "reads metadata.namespace"
	Accumulates        Mode = "accumulates"
	TreatedUnlike      Mode = "treated unlike"
	Incomplete         Mode = "incomplete"
	Removes            Mode = "removes"
	RemovesSample      Mode = "removes from sample"
	Overwrites         Mode = "overwrites"
	NeedsUpdate        Mode = "needs UPDATE"
	OverwritesZero     Mode = "overwrites a zero"
	Misuses            Mode = "misuses"
	Immutable          Mode = "immutable"
	BlocksDeletion     Mode = "blocks deletion"
	NotTheSame         Mode = "not the same"
	SideEffect         Mode = "side effect"
	Differs            Mode = "differs"
	Envelope           Mode = "envelope"
	EnvelopeAgain      Mode = "envelope again"
	Rounds             Mode = "rounds"
	Loses              Mode = "loses"
	DoesNotApply       Mode = "does not apply"
	DoesNotApplyAgain  Mode = "does not apply again"
	Order              Mode = "depends on the order"
	AddsZero           Mode = "adds a zero value"
	LostByReplace      Mode = "lost by replace"
	PutsBack           Mode = "puts back"
	CannotReplace      Mode = "cannot be replaced"
	Regenerates        Mode = "regenerates"
	ChangesWithName    Mode = "changes with the name"
	Collides           Mode = "collides"
	IgnoresChange      Mode = "ignores a change"
	ReadsStatus        Mode = "depends on the status"
)
