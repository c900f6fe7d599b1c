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

// PingPong is the ID of the rule for two webhooks that change the same field back and forth.
const PingPong = pingPong

// These are the IDs of the rules, in the order of the rules in the report: the most severe first.
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
		"Find the cause in the message, which is the API server's error. Run at least two replicas. Set failurePolicy to Ignore if the cluster can work without the webhook."},
	{notIdempotent, Error, "the webhook added the same element again when it was reinvoked",
		"Check whether the object already has the element before adding it. Run admitkit verify to find the smallest object that shows the problem."},
	{pingPong, Error, "two webhooks change the same field back and forth",
		"Let only one webhook write the field. The other one must keep a value that it did not set."},
	{apiServerPanic, Error, "the API server panicked in a request that called webhooks",
		"Find the stack trace in the API server's log. A webhook that denies with a code of 1000 or more causes this panic."},
	{patchRefused, Error, "requests failed because a patch could not be applied",
		"Compute the patch from the object in the request, and create a parent before its members. Run admitkit verify to find such objects."},
	{failedOpen, Warning, "the webhook failed and was ignored",
		"Check its availability, timeouts and certificate. Check also the objects of the requests that continued: the webhook did not enforce its policy for them."},
	{mutatesAgain, Warning, "the same object was changed again and again",
		"Find who reverts the change each time: a controller, a pipeline that applies the whole object, or another webhook. The users of the requests are in the examples. Or the webhook sends patches that change nothing."},
	{noOpReinvokes, Warning, "a patch that changes nothing caused reinvocations of other webhooks",
		"Return no patch, or an empty list of operations, if there is nothing to change."},
	{slowMutating, Warning, "requests waited long for mutating webhooks",
		"Mutating webhooks are called one after the other. Narrow their rules, add matchConditions, give the replicas more CPU, or reduce timeoutSeconds."},
	{slowValidating, Warning, "requests waited long for validating webhooks",
		"A request waits for the slowest validating webhook. Find it with the metric apiserver_admission_webhook_admission_duration_seconds."},
	{certificateRule, Warning, "the API server warns about a serving certificate",
		"Issue a certificate with the host in its subject alternative names and a signature with SHA-256 or better."},
	{noDryRun, Warning, "dry-run requests were rejected because the webhook does not support them",
		"Set sideEffects to None. Or set it to NoneOnDryRun and check dryRun in the request. kubectl diff and server-side dry runs need this."},
	{mutatesEachTime, Advice, "each update of an object got a different change",
		"This is correct if the webhook records each change, such as its time or user. Otherwise its response depends on more than the object: run admitkit verify."},
	{noOp, Advice, "the webhook sends patches that change nothing",
		"Return no patch if there is nothing to change. A patch can cause reinvocations of earlier webhooks."},
	{bothRounds, Advice, "several webhooks changed the object in both rounds",
		"They may revert each other's changes. Set the audit level to Request, which records patches, to find out."},
	{secretInPatch, Advice, "a patch wrote a likely secret into the audit log",
		"Refer to a Secret, with valueFrom or a volume, instead of writing its value into the object. Until then, log such objects at level Metadata."},
}

// ruleOf returns the rule with this ID, and its index in rules. The index of an unknown ID is len(rules).
func ruleOf(id string) (rule, int) {
	for i, r := range rules {
		if r.id == id {
			return r, i
		}
	}
	return rule{id: id}, len(rules)
}
