// SPDX-License-Identifier: Apache-2.0

package review

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// A Decision is a webhook's answer: allowed or denied, with warnings and audit annotations. [Allow]
// and [Deny] return one; the zero value allows. It is not safe for concurrent use.
type Decision struct {
	denial        *metav1.Status
	warnings      []string
	warningRunes  int
	auditAnnotate map[string]string
}

// Allow returns a decision that allows the request.
func Allow() *Decision { return &Decision{} }

// Deny returns a decision that denies the request with a status, see [Decision.Deny].
func Deny(status metav1.Status) *Decision {
	d := Allow()
	d.Deny(status)
	return d
}

// Deny turns the decision into a denial with a copy of status for the API client. Warnings and audit
// annotations stay. Deny completes the status, because the API server passes it on as it is
// (ToStatusErr in k8s.io/apiserver):
//
//   - a code outside 400–599 becomes the reason's code, else 403: the API server turns lower codes
//     into 400, and a code of 1000 or more makes its request handler panic;
//   - a missing reason is derived from the code, since clients test the reason;
//   - a missing message becomes the reason;
//   - status.status is Failure.
//
// The API server puts `admission webhook "<name>" denied the request: ` before the message.
func (d *Decision) Deny(status metav1.Status) {
	if status.Code < 400 || status.Code > 599 {
		status.Code = codeOf(status.Reason)
	}
	if strings.TrimSpace(string(status.Reason)) == "" {
		status.Reason = reasonOf(status.Code)
	}
	if strings.TrimSpace(status.Message) == "" {
		status.Message = string(status.Reason)
	}
	status.Status = metav1.StatusFailure
	status.TypeMeta = metav1.TypeMeta{}
	d.denial = status.DeepCopy()
}

// Allowed reports whether the decision allows the request.
func (d *Decision) Allowed() bool { return d.denial == nil }

// Denial returns the status of a denial, or nil. The caller must not change it.
func (d *Decision) Denial() *metav1.Status { return d.denial }

// The API server drops a warning with a control character, and truncates the warnings of a request that
// exceed 4096 runes together (AddWarning, NewWarningHeader).
const (
	maxWarningRunes  = 120
	maxWarningsRunes = 4096
)

// Warn adds a warning for the API client and makes it safe to send: each line becomes a warning of its own,
// lines longer than 120 characters are wrapped, control characters become spaces, and repeated lines
// appear once. Once the warnings exceed 4096 characters together, Warn drops the rest.
func (d *Decision) Warn(text string) {
	for line := range strings.Lines(strings.ToValidUTF8(text, "\uFFFD")) {
		line = strings.Map(func(r rune) rune {
			if unicode.IsControl(r) {
				return ' '
			}
			return r
		}, line)
		for _, part := range wrap(strings.Fields(line), maxWarningRunes) {
			d.addWarning(part)
		}
	}
}

func (d *Decision) addWarning(line string) {
	if d.warningRunes > maxWarningsRunes || slices.Contains(d.warnings, line) {
		return
	}
	// Dropped lines count too, so that no line is sent after one that was dropped.
	if d.warningRunes += utf8.RuneCountInString(line); d.warningRunes <= maxWarningsRunes {
		d.warnings = append(d.warnings, line)
	}
}

// wrap joins words into lines of at most limit runes and breaks longer words.
func wrap(words []string, limit int) []string {
	var lines []string
	line, length := "", 0
	flush := func() {
		if length > 0 {
			lines, line, length = append(lines, line), "", 0
		}
	}
	for _, word := range words {
		head, rest := cut(word, limit)
		for ; rest != ""; head, rest = cut(rest, limit) {
			flush()
			lines = append(lines, head)
		}
		n := utf8.RuneCountInString(head)
		if length+1+n > limit {
			flush()
		}
		if length > 0 {
			line, length = line+" ", length+1
		}
		line, length = line+head, length+n
	}
	flush()
	return lines
}

// cut splits s after at most n runes.
func cut(s string, n int) (head, tail string) {
	for i := range s {
		if n--; n < 0 {
			return s[:i], s[i:]
		}
	}
	return s, ""
}

// Warnings returns the warnings as they will be sent.
func (d *Decision) Warnings() []string { return d.warnings }

// Audit adds an annotation to the API server's audit event, which stores it as "<webhook name>/<key>".
// It fails and adds nothing unless the key has 1–63 letters, digits, "-", "_" and ".", and begins and
// ends with a letter or digit: the API server would drop such an annotation and only log it
// (checkKeyFormat). Within one API request the first value of a key wins, so a value should not depend
// on whether the webhook is called for the first time or again.
func (d *Decision) Audit(key, value string) error {
	if strings.Contains(key, "/") {
		return fmt.Errorf("audit annotation key %q: the API server adds the prefix itself, so it must not contain a slash", key)
	}
	if problems := validation.IsQualifiedName(key); len(problems) > 0 {
		return fmt.Errorf("audit annotation key %q: %s", key, strings.Join(problems, "; "))
	}
	if d.auditAnnotate == nil {
		d.auditAnnotate = map[string]string{}
	}
	d.auditAnnotate[key] = value
	return nil
}

// AuditAnnotations returns the audit annotations. The caller must not change the map.
func (d *Decision) AuditAnnotations() map[string]string { return d.auditAnnotate }

// codes pairs the API's reasons with their codes. If several reasons share a code, reasonOf returns the
// first.
var codes = []struct {
	reason metav1.StatusReason
	code   int32
}{
	{metav1.StatusReasonUnauthorized, http.StatusUnauthorized},
	{metav1.StatusReasonForbidden, http.StatusForbidden},
	{metav1.StatusReasonNotFound, http.StatusNotFound},
	{metav1.StatusReasonConflict, http.StatusConflict},
	{metav1.StatusReasonGone, http.StatusGone},
	{metav1.StatusReasonInvalid, http.StatusUnprocessableEntity},
	{metav1.StatusReasonTimeout, http.StatusGatewayTimeout},
	{metav1.StatusReasonTooManyRequests, http.StatusTooManyRequests},
	{metav1.StatusReasonBadRequest, http.StatusBadRequest},
	{metav1.StatusReasonMethodNotAllowed, http.StatusMethodNotAllowed},
	{metav1.StatusReasonNotAcceptable, http.StatusNotAcceptable},
	{metav1.StatusReasonRequestEntityTooLarge, http.StatusRequestEntityTooLarge},
	{metav1.StatusReasonUnsupportedMediaType, http.StatusUnsupportedMediaType},
	{metav1.StatusReasonInternalError, http.StatusInternalServerError},
	{metav1.StatusReasonServiceUnavailable, http.StatusServiceUnavailable},
	{metav1.StatusReasonAlreadyExists, http.StatusConflict},
	{metav1.StatusReasonServerTimeout, http.StatusInternalServerError},
	{metav1.StatusReasonExpired, http.StatusGone},
}

func codeOf(reason metav1.StatusReason) int32 {
	for _, c := range codes {
		if c.reason == reason {
			return c.code
		}
	}
	return http.StatusForbidden
}

func reasonOf(code int32) metav1.StatusReason {
	for _, c := range codes {
		if c.code == code {
			return c.reason
		}
	}
	text := strings.NewReplacer(" ", "", "'", "", "-", "").Replace(http.StatusText(int(code)))
	if text == "" {
		text = "Unknown"
	}
	return metav1.StatusReason(text)
}
