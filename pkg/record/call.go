// SPDX-License-Identifier: Apache-2.0

package record

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/admitkit/admitkit/pkg/webhook"
)

// A Call is a recorded call of a webhook.
type Call struct {
	// Line is the number of the line in its file.
	Line int
	// Time is the beginning of the call.
	Time time.Time
	// Webhook is the name of the hook. It is empty for a handler that is not a hook.
	Webhook string
	// Type is "mutating" or "validating". It is empty if the type is unknown: for a handler that is not a hook and that
	// sent no patch.
	Type string
	// Path is the path of the URL that was called.
	Path string
	// Outcome is the result of the call. Mode and Withheld are copied from the webhook.Observation of a hook.
	Outcome  webhook.Outcome
	Mode     webhook.Mode
	Withheld webhook.Outcome
	// Code is the HTTP code of the answer, or the code of a denial by a hook. It is 0 if there was no answer.
	Code int
	// Duration is the time that the webhook took.
	Duration time.Duration
	// Novel is true for one of the first calls of its combination, which are recorded at any rate. See Options.Novel.
	Novel bool
	// Key is the ID of the key that made the pseudonyms. It is empty if the secrets were not replaced.
	Key string
	// Request is the AdmissionReview of the API server.
	Request []byte
	// Answer is the body of the answer: an AdmissionReview, or the metav1.Status of a failure. If the answer is not a
	// JSON object, this is the beginning of its text. It is empty if there was no answer.
	Answer []byte
}

// A header has the members of a line that come before the request and the answer, in the order of the file.
type header struct {
	Format   string          `json:"format"`
	Time     time.Time       `json:"time"`
	Webhook  string          `json:"webhook,omitempty"`
	Type     string          `json:"type,omitempty"`
	Path     string          `json:"path,omitempty"`
	Outcome  webhook.Outcome `json:"outcome"`
	Mode     webhook.Mode    `json:"mode,omitempty"`
	Withheld webhook.Outcome `json:"withheld,omitempty"`
	Code     int             `json:"code"`
	Seconds  float64         `json:"durationSeconds"`
	Novel    bool            `json:"novel,omitempty"`
	Key      string          `json:"key,omitempty"`
}

// appendLine appends the line of a call to dst. The documents are in the form of package redact.
func (c *Call) appendLine(dst []byte) []byte {
	head, _ := json.Marshal(header{ // it always marshals
		Format: Format, Time: c.Time.UTC(), Webhook: c.Webhook, Type: c.Type, Path: c.Path, Outcome: c.Outcome, Mode: c.Mode,
		Withheld: c.Withheld, Code: c.Code, Seconds: seconds(c.Duration), Novel: c.Novel, Key: c.Key,
	})
	dst = append(dst, head[:len(head)-1]...)
	dst = append(append(dst, `,"request":`...), c.Request...)
	dst = append(append(dst, `,"answer":`...), c.Answer...)
	return append(dst, "}\n"...)
}

// seconds returns a duration in seconds, rounded to microseconds.
func seconds(d time.Duration) float64 {
	f, _ := strconv.ParseFloat(strconv.FormatFloat(d.Seconds(), 'f', 6, 64), 64) // it is a number
	return f
}
