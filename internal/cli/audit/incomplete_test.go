// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"strings"
	"testing"
)

// TestIncomplete checks that a report without findings is incomplete if skipped lines may have been events.
func TestIncomplete(t *testing.T) {
	good := event{ID: "x", Calls: []recordedCall{{Hook: "a.example.com"}}}.line()
	for _, c := range []struct{ reason, log, want string }{
		{"all was read", good, ""},
		{"the API server is still writing", good + good[:50], ""},
		{"another object is no event", good + `{"kind":"Pod","apiVersion":"v1"}` + "\n\n", ""},
		{"cut off in the middle", good + good[:50] + "\n" + good, "1 line of log could not be read and may have been an event"},
		{"nearly all is unreadable", good + strings.Repeat("\x00\xff\n", 1000), "1000 lines of log could not be read and may have been events"},
		{"too long", good + strings.Repeat("x", longest+1) + "\n", "1 line of log could not be read and may have been an event"},
		{"too long, at the end", good + strings.Repeat("x", longest+1), "1 line of log could not be read and may have been an event"},
		{"a list with something else in it", good + `{"kind":"EventList","apiVersion":"audit.k8s.io/v1","items":[1]}` + "\n", "1 line of log could not be read and may have been an event"},
		{"wrapped", good + `{"message":"{\"apiVersion\":\"audit.k8s.io/v1\"}"}` + "\n", "1 line of log could not be read and may have been an event"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			if got := strings.Join(read(t, defaults(), c.log).Incomplete, "; "); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// TestUnreadAnnotations checks that malformed annotations of the API server are counted.
func TestUnreadAnnotations(t *testing.T) {
	call := []recordedCall{{Hook: "a.example.com"}}
	for _, c := range []struct {
		reason string
		event  event
		want   int
	}{
		{"well-formed annotations", event{ID: "x", Calls: []recordedCall{{Hook: "a.example.com", Mutated: true, Patch: setA}}}, 0},
		{"a patch that is not JSON", event{ID: "x", Calls: call, Annotations: map[string]string{patchPrefix + "round_0_index_0": `{"patch":[`}}, 1},
		{"a patch that is not a list", event{ID: "x", Calls: call, Annotations: map[string]string{patchPrefix + "round_0_index_0": `{"patch":7}`}}, 1},
		{"a patch without a call", event{ID: "x", Calls: call, Annotations: map[string]string{patchPrefix + "round_0_index_7": `{"patch":[]}`}}, 1},
		{"a call without a webhook", event{ID: "x", Annotations: map[string]string{mutationPrefix + "round_0_index_0": "{}"}}, 1},
	} {
		t.Run(c.reason, func(t *testing.T) {
			want := "1 annotation of the API server about calls and patches could not be decoded"
			notes := strings.Join(read(t, defaults(), c.event.line()).Notes, "\n")
			if strings.Contains(notes, want) != (c.want > 0) {
				t.Errorf("%q", notes)
			}
		})
	}
}
