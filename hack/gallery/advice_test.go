// SPDX-License-Identifier: Apache-2.0

package gallery

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/client-go/rest"
	"k8s.io/kubernetes/plugin/pkg/admission/imagepolicy"
)

// advice contains the parts of a decision besides its verdict: the warnings for the user, and the annotations of the
// audit event.
type advice struct {
	warnings    []string
	annotations map[string]string // by key, without the prefix before the slash
}

func (a advice) String() string {
	if len(a.warnings) == 0 && len(a.annotations) == 0 {
		return ""
	}
	return fmt.Sprintf(" (warnings %q, audit annotations %q)", a.text(), a.annotations)
}

func (a advice) equal(other advice) bool {
	return a.text() == other.text() && maps.Equal(a.annotations, other.annotations)
}

// text joins the words of all warnings, because a hook splits a long warning.
func (a advice) text() string {
	return strings.Join(strings.Fields(strings.Join(a.warnings, " ")), " ")
}

func (a *advice) add(other advice) {
	a.warnings = append(a.warnings, other.warnings...)
	for key, value := range other.annotations {
		a.annotate(key, value)
	}
}

func (a *advice) annotate(key, value string) {
	if a.annotations == nil {
		a.annotations = map[string]string{}
	}
	a.annotations[path.Base(key)] = value
}

// withAdvice returns a context for an original, and a function that returns the advice that the original has given.
func withAdvice(t *testing.T) (context.Context, func() advice) {
	t.Helper()
	log := &warningLog{}
	ctx := audit.WithAuditContext(warning.WithWarningRecorder(t.Context(), log))
	if err := audit.AuditContextFrom(ctx).Init(audit.RequestAuditConfig{Level: auditinternal.LevelMetadata}, nil); err != nil {
		t.Fatal(err)
	}
	return ctx, func() advice {
		a := advice{warnings: log.take()}
		for key, value := range audit.AuditContextFrom(ctx).GetEventAnnotations() {
			a.annotate(key, value)
		}
		return a
	}
}

func adviceIn(response *admissionv1.AdmissionResponse) advice {
	a := advice{warnings: response.Warnings}
	for key, value := range response.AuditAnnotations {
		a.annotate(key, value)
	}
	return a
}

// A warningLog collects the warnings of an original or of an API server.
type warningLog struct {
	mu   sync.Mutex
	list []string
}

func (l *warningLog) AddWarning(_, text string) { l.HandleWarningHeader(0, "", text) }

func (l *warningLog) HandleWarningHeader(_ int, _, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, text)
}

// take returns the warnings and removes them from the log.
func (l *warningLog) take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := l.list
	l.list = nil
	return list
}

const auditPolicy = `
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules: [{level: Metadata}]
`

// An auditLog is the audit log of an API server. It remembers the ID of the client's last call.
type auditLog struct {
	file string
	mu   sync.Mutex
	id   string
}

// observe makes clients with this configuration record warnings and audit IDs.
func (s *server) observe(config *rest.Config) {
	config.WarningHandler = &s.warnings
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return auditedTransport{next, &s.audit} })
}

type auditedTransport struct {
	http.RoundTripper
	log *auditLog
}

func (a auditedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := a.RoundTripper.RoundTrip(r)
	if err == nil {
		a.log.mu.Lock()
		defer a.log.mu.Unlock()
		a.log.id = response.Header.Get("Audit-Id")
	}
	return response, err
}

func (l *auditLog) last() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.id
}

// annotating lists the prefixes of the originals' audit annotations.
var annotating = []string{"pod-security.kubernetes.io/", imagepolicy.AuditKeyPrefix}

// annotate adds the audit annotations to the answers. It waits until the log has the event of each call.
func (l *auditLog) annotate(t *testing.T, answers []answer) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		events, err := l.events()
		for i := range answers {
			a := &answers[i]
			if events[a.auditID] == nil {
				return false, err
			}
			for key, value := range events[a.auditID].Annotations {
				if slices.ContainsFunc(annotating, func(prefix string) bool { return strings.HasPrefix(key, prefix) }) || strings.Contains(key, ".example.com/") {
					a.advice.annotate(key, value)
				}
			}
		}
		return true, err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// An auditEvent contains some fields of an event in the log.
type auditEvent struct {
	AuditID     string            `json:"auditID"`
	Annotations map[string]string `json:"annotations"`
}

// events returns the complete events of the log by their ID.
func (l *auditLog) events() (map[string]*auditEvent, error) {
	data, err := os.ReadFile(l.file)
	if err != nil {
		return nil, err
	}
	events := map[string]*auditEvent{}
	for line := range bytes.Lines(data) {
		event := &auditEvent{}
		if err := json.Unmarshal(line, event); err == nil { // the last line may be incomplete
			events[event.AuditID] = event
		}
	}
	return events, nil
}
