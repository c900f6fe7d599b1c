// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"fmt"
	"strings"
	"time"

	"github.com/admitkit/admitkit/internal/textutil"
)

// Hints maps codes to hints. A hint is the last part of the text of a reason, and says what the reader can do. The
// default hints name fields of [Options]; a command line program can name its flags instead.
type Hints map[ReasonCode]string

var optionHints = Hints{
	ReasonUnknownKinds:         "add an object that it handles to Options.Samples, or the definition of the custom resource to Options.CRDs",
	ReasonUnknownHost:          "this machine does not know the name: a Service has a name only inside its cluster",
	ReasonCertificateName:      "use one of the names in the certificate, or set ServerName in the client's tls.Config",
	ReasonCertificateInvalid:   "check the dates and the key usages of the certificate",
	ReasonCertificateUntrusted: "give URL an HTTP client whose tls.Config has the caBundle as RootCAs",
	ReasonNotTLS:               "the server does not speak TLS: check the port, or use http://",
	ReasonHandshakeEnded:       "the server ended the TLS handshake: it may want a client certificate",
	ReasonConnectionRefused:    "nothing listens there: check that the server runs, and the port",
	ReasonNoConnection:         "there is no connection: check the address and the network",
	ReasonWrongPath:            "check the path of the URL",
	ReasonSamplesNeeded:        "add objects that it changes to Options.Samples, or explain in Options.AllowInconclusive why there are none",
	ReasonTriggerSearched:      "a sample needs the labels, annotations, fields or namespace for which its code acts",
	ReasonValidSampleNeeded:    "add a valid object to Options.Samples, or correct the fields that the message names. A field that the webhook itself fills may be absent",
	ReasonBudgetSpent:          "raise Options.Budget, or lower Options.Objects",
	ReasonEffectsUnwatched:     "set Options.Observe to watch it",
	ReasonLawExcluded:          "Options.Without excludes it",
	ReasonScopeAssumed:         "if it is not, set the scope of the rule, or add the definition to Options.CRDs",
	ReasonKindNotTried:         "add one to Options.Samples, or delete the file",
	ReasonObjectRefused:        "delete the file",
	ReasonRivalMissing:         "add it to Options.Rivals, or delete the file",
	ReasonTimeGapsMissing:      "set that option, or delete the file",
	ReasonLawNotApplied:        "delete the file",
	ReasonExceptionUnused:      "check the path, and whether the webhook still makes that change",
}

// Text returns the text of the reason with its hint. If hints has no entry for the code, Text uses the default hint,
// which is for the author of a Go test.
func (r Reason) Text(hints Hints) string {
	words, ok := hints[r.Code]
	if !ok {
		words = optionHints[r.Code]
	}
	return r.statement(hints, words)
}

// because returns the texts of the reasons in Because.
func (r Reason) because(hints Hints) string {
	texts := make([]string, len(r.Because))
	for i, b := range r.Because {
		texts[i] = b.Text(hints)
	}
	return strings.Join(texts, "; ")
}

func (r Reason) statement(all Hints, hint string) string {
	switch r.Code {
	case ReasonInvalidOptions, ReasonNoHandler, ReasonNote:
		return r.Detail
	case ReasonUnknownKinds:
		return "the harness cannot generate objects of the kinds in its rules: " + hint
	case ReasonBadStoredCase:
		return strings.TrimPrefix(r.File+": ", ": ") + r.Detail
	case ReasonAPIServerFailed:
		return "the API server: " + r.Detail
	case ReasonNotForFuzz:
		return strings.Join(r.Names, ", ") + ": this option is for Check, not for Fuzz"
	case ReasonBudgetOfInput:
		return fmt.Sprintf("one input took longer than its budget of %s", r.Limit)
	case ReasonUnknownHost, ReasonCertificateName, ReasonCertificateInvalid, ReasonCertificateUntrusted, ReasonNotTLS,
		ReasonHandshakeEnded, ReasonConnectionRefused, ReasonNoConnection, ReasonWrongPath:
		return fmt.Sprintf("%s cannot be reached: %s (%s)", r.URL, r.Detail, hint)
	}
	if text := r.ofLaw(hint); text != "" {
		return text
	}
	if text := r.ofRun(all, hint); text != "" {
		return text
	}
	if text := r.ofStoredCase(all, hint); text != "" {
		return text
	}
	return r.ofNote(all, hint)
}

// ofLaw returns the text of a reason for the verdict on one law, or "" for any other reason.
func (r Reason) ofLaw(hint string) string {
	switch r.Code {
	case ReasonLawExcluded:
		return hint
	case ReasonNoUpdateRule:
		return "the rules have no UPDATE"
	case ReasonNoDryRun:
		return "because of sideEffects, the API server rejects dry runs without calling the webhook"
	case ReasonNothingToEdit:
		return "the webhook adds nothing that another party could edit"
	case ReasonNothingToAdd:
		return "these objects have nothing that another party could add to"
	case ReasonNoParts:
		return "the webhook adds no parts that an object could already have"
	case ReasonNoPlaceForField:
		return "these objects have no place for an unknown field"
	case ReasonNoOtherWebhook:
		return "there is no other webhook"
	case ReasonEffectsUnwatched:
		return "the answers agree; effects outside of the object were not observed: " + hint
	case ReasonImpure:
		return "not decided, because the webhook gives different results for the same request"
	case ReasonRunEnded:
		return "the run ended before the law was decided"
	case ReasonNoValidObject:
		return strings.TrimSuffix("the API server would accept none of the generated objects: "+r.Detail, ": ")
	case ReasonNotCalled:
		return fmt.Sprintf("the webhook was called for none of %s: %s", textutil.Count(r.Of, "object"), strings.Join(r.Names, "; "))
	case ReasonChangedNone:
		return fmt.Sprintf("the webhook changed none of %s%s", textutil.Count(r.Of, "object"), r.denials())
	case ReasonChangedFew:
		return fmt.Sprintf("the webhook changed only %d of %s%s", r.Count, textutil.Count(r.Of, "object"), r.denials())
	case ReasonTriggerSearched:
		return r.searchedText(hint)
	case ReasonFewCases:
		return fmt.Sprintf("only %d of %s could be decided: in the others, the API server refuses the input or the webhook denies it", r.Count, textutil.Count(r.Of, "case"))
	}
	return ""
}

func (r Reason) denials() string {
	if r.Denied == 0 {
		return ""
	}
	return fmt.Sprintf(", and denied %d, such as: %s", r.Denied, r.Detail)
}

// ofRun returns the text of a reason why a run is incomplete, or "" for any other reason.
func (r Reason) ofRun(all Hints, hint string) string {
	switch r.Code {
	case ReasonSamplesNeeded, ReasonValidSampleNeeded:
		return r.Kind + ": " + r.because(all) + ": " + hint
	case ReasonLawUndecided:
		return fmt.Sprintf("%s: %s: %s", r.Kind, r.Law.Title(), r.because(all))
	case ReasonSubresourcesOnly:
		return "its rules name only subresources (" + strings.Join(r.Names, ", ") + "), for which the harness generates no objects"
	case ReasonNoAnswer:
		return "the run ended early, because the webhook answered no call"
	case ReasonBudgetSpent:
		return fmt.Sprintf("the run ended early, after its budget of %s: %s", r.Limit, hint)
	case ReasonInterrupted:
		return "the run was interrupted: the report has the results until then"
	case ReasonEndedEarly:
		return "the run ended early: " + r.Detail
	case ReasonServerLost:
		text := "the run ended early, because a server stopped answering: " + r.because(all)
		if r.Detail != "" {
			text += ". The connection broke during a call for the object below. If that object crashes the server, correct the server. Then start it and run again. The object: " + r.Detail
		}
		return text
	case ReasonCaseNotTried:
		return fmt.Sprintf("the stored case %s cannot be checked: %s", r.File, r.because(all))
	case ReasonBrokenConnections:
		return fmt.Sprintf("%d of %s had to be repeated, because the server broke the connection: the API server does not repeat a call, so with failurePolicy Fail each broken connection is an error for a user",
			r.Count, textutil.Count(r.Of, "call"))
	}
	return ""
}

// ofStoredCase returns the text of a reason why a stored case cannot be replayed, or "" for any other reason.
func (r Reason) ofStoredCase(all Hints, hint string) string {
	switch r.Code {
	case ReasonKindNotTried:
		return "the run has no objects of " + r.Kind + ": " + hint
	case ReasonObjectRefused:
		return "the API server no longer accepts its object: " + hint
	case ReasonRivalMissing:
		return fmt.Sprintf("this run has no rival webhook %q: %s", r.Webhook, hint)
	case ReasonTimeGapsMissing:
		return "the case needs Options.TimeGaps: " + hint
	case ReasonLawNotApplied:
		return fmt.Sprintf("%s no longer applies: %s: %s", r.Law.Title(), r.because(all), hint)
	case ReasonEditGone:
		return "the field that the case edits no longer exists, or the webhook is not called for the object"
	}
	return ""
}

// ofNote returns the text of a note, or the code of any other reason.
func (r Reason) ofNote(all Hints, hint string) string {
	switch r.Code {
	case ReasonScopeAssumed:
		return r.Kind + " is assumed to be namespaced: " + hint
	case ReasonSampleRefused:
		return fmt.Sprintf("sample %d of the kind %s is not used, because the API server rejects it: %s", r.Count, r.Kind, r.Detail)
	case ReasonKindsNotTried:
		return "the rules also have these resources, but no sample does, so they were not tested: " + strings.Join(r.Names, ", ")
	case ReasonNothingNew:
		return fmt.Sprintf("%s: the run ended after %d of %s, because the last ones showed no new kind of patch or denial", r.Kind, r.Count, textutil.Count(r.Of, "object"))
	case ReasonCaseNotStored:
		return "a failing case cannot be stored: " + r.Detail
	case ReasonCaseOutdated:
		return fmt.Sprintf("the stored case %s no longer applies: %s", r.File, r.because(all))
	case ReasonAPIServerLimit:
		return "the API server: " + r.Detail
	case ReasonLawMayBeUnsure:
		return fmt.Sprintf("%s is inconclusive (%s), which is allowed: %s", r.Kind, r.because(all), r.Detail)
	case ReasonExceptionUnused:
		return "the exception for " + exempted(r.Path, r.Law) + " was not needed, because nothing there breaks a law: " + r.hintFor(hint)
	case ReasonNoInitContainer:
		return r.Kind + ": no init container was ever changed"
	case ReasonNoUpdate:
		return r.Kind + ": no UPDATE was ever changed"
	case ReasonSlowCall:
		return fmt.Sprintf("the slowest call took %s: for %s", r.Limit.Round(100*time.Millisecond), r.Detail)
	case ReasonFilled:
		return "objects without these fields are tried, too, because the webhook fills them: " + strings.Join(r.Names, ", ")
	case ReasonSwitches:
		return r.Kind + ": no sample has these labels or annotations, but each of them changes what the webhook does, so an object with each of them was tested, too: " + strings.Join(r.Names, ", ")
	case ReasonSafeIfNeeded:
		return "reinvocationPolicy is Never, so containers that other webhooks add later get nothing. It is safe to set IfNeeded: the laws about further calls pass"
	case ReasonNotIfNeeded:
		return "reinvocationPolicy is Never, so containers that other webhooks add later get nothing. Before you set IfNeeded, correct what breaks " + strings.Join(titles(r.Names), ", ")
	case ReasonCallsRepeated:
		text := textutil.Count(r.Count, "call") + " had to be repeated, because the connection broke"
		if len(r.Names) > 0 {
			text += ": see " + strings.Join(titles(r.Names), ", ")
		}
		return text
	}
	return string(r.Code)
}

// hintFor returns the hint for an exception that covered nothing: the path that would cover a finding, or the usual hint.
func (r Reason) hintFor(usual string) string {
	if r.Detail == "" {
		return usual
	}
	return "the nearest finding is at " + r.Detail
}

// titles returns the titles of laws.
func titles(laws []string) []string {
	var all []string
	for _, law := range laws {
		all = append(all, Law(law).Title())
	}
	return all
}

// exempted names the path and the law of an exception, either of which may be empty.
func exempted(path string, law Law) string {
	switch {
	case law == "":
		return path
	case path == "":
		return law.Title()
	}
	return path + ", " + law.Title()
}
