// SPDX-License-Identifier: Apache-2.0

package audit

// A Severity ranks findings.
type Severity string

// The severities. Errors and warnings make the exit code 1.
const (
	Error   Severity = "error"
	Warning Severity = "warning"
	Advice  Severity = "advice"
)

// A rule is a kind of finding.
type rule struct {
	id       string
	severity Severity
	// title names the problem, and fix says what to change.
	title, fix string
}

// rules are ordered from the most severe, as in the report.
const (
	failedClosed    = "failed-closed"
	notIdempotent   = "not-idempotent"
	pingPong        = "ping-pong"
	apiServerPanic  = "panic"
	patchRefused    = "patch-refused"
	failedOpen      = "failed-open"
	mutatesAgain    = "mutates-again"
	noOpReinvokes   = "no-op-reinvokes"
	slowMutating    = "slow-mutating"
	slowValidating  = "slow-validating"
	certificateRule = "certificate"
	noDryRun        = "no-dry-run"
	mutatesEachTime = "mutates-each-time"
	noOp            = "no-op-patch"
	bothRounds      = "both-rounds"
	secretInPatch   = "secret-in-log"
)

var rules = []rule{
	{failedClosed, Error, "requests were rejected because the webhook failed",
		"Find out why it fails (the message says what the API server saw); run two replicas or more; if the cluster may do without it, failurePolicy Ignore."},
	{notIdempotent, Error, "the webhook added the same again when it was called again",
		"Look whether the object has it already before adding it; admitkit verify shows it with the smallest object."},
	{pingPong, Error, "two webhooks change the same field back and forth",
		"Let one webhook own the field: the other one has to leave a value alone that it did not set."},
	{apiServerPanic, Error, "the API server panicked in a request that called webhooks",
		"Look for the stack in the API server's log; a webhook that denies with a code of 1000 or more does this."},
	{patchRefused, Error, "requests failed because a patch could not be applied",
		"Make the patch from the object that the webhook was sent, and create parents before members; admitkit verify shows it."},
	{failedOpen, Warning, "the webhook failed and was passed over",
		"Look at its availability, timeouts and certificate, and at the objects of requests that went on: what it enforces was not enforced for them."},
	{mutatesAgain, Warning, "the same object was changed again and again",
		"Somebody takes the change back each time (a controller, a pipeline that applies the whole object, another webhook), or the webhook sends a patch that changes nothing. The users tell who writes."},
	{noOpReinvokes, Warning, "a patch that changes nothing had other webhooks called again",
		"Return no patch, or an empty list of operations, when there is nothing to do."},
	{slowMutating, Warning, "requests waited long for mutating webhooks",
		"Mutating webhooks are called one after the other: narrow the rules, add matchConditions, give replicas more CPU, shorten timeoutSeconds."},
	{slowValidating, Warning, "requests waited long for validating webhooks",
		"The slowest validating webhook is what a request waits for; apiserver_admission_webhook_admission_duration_seconds tells which one it is."},
	{certificateRule, Warning, "the API server warns about a serving certificate",
		"Issue a certificate with the host in its subject alternative names, signed with SHA-256 or better."},
	{noDryRun, Warning, "dry-run requests were rejected because the webhook does not support them",
		"Declare sideEffects None, or NoneOnDryRun and look at dryRun in the request: kubectl diff and server-side dry-run need it."},
	{mutatesEachTime, Advice, "the same object was changed each time in another way",
		"Fine if the webhook stamps each change (a time, a user). If not, its answer depends on more than the object: admitkit verify tells."},
	{noOp, Advice, "the webhook sends patches that change nothing",
		"Return no patch when there is nothing to do: on the first patch of a request earlier webhooks may be called again for it."},
	{bothRounds, Advice, "several webhooks changed the object in both rounds",
		"They may undo each other's changes. Log at level Request, which records patches, to tell."},
	{secretInPatch, Advice, "a patch put what looks like a secret into the audit log",
		"Refer to a Secret (valueFrom, a volume) instead of writing its value into the object; keep the level at Metadata for such objects until then."},
}

// ruleOf returns the rule with an ID and its index.
func ruleOf(id string) (rule, int) {
	for i, r := range rules {
		if r.id == id {
			return r, i
		}
	}
	return rule{id: id}, len(rules)
}
