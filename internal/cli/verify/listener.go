// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"unicode/utf8"

	"sigs.k8s.io/yaml"

	"github.com/admitkit/admitkit/internal/cli/traffic"
	"github.com/admitkit/admitkit/internal/problem"
)

// A listener checks the responses of each URL until one of them looks like a response of a webhook. If the first
// responses are errors, the URL is usually wrong, so the listener ends the run.
type listener struct {
	*runner
	hook  target
	token string
	next  http.RoundTripper

	mu     sync.Mutex
	heard  map[string]bool // URLs that have answered as a webhook
	failed map[string]int  // number of failed first responses, by URL
}

// RoundTrip implements http.RoundTripper.
func (l *listener) RoundTrip(r *http.Request) (*http.Response, error) {
	if l.token != "" {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+l.token)
	}
	response, err := l.next.RoundTrip(r)
	where := plainURL(r)
	l.mu.Lock()
	heard := l.heard[where]
	l.mu.Unlock()
	switch {
	case heard:
	case err != nil:
		if problem := l.unreachable(r, err); problem != nil {
			l.fail(problem)
		}
	default:
		l.judge(where, response)
	}
	return response, err
}

// plainURL returns the URL without the timeout parameter that the API server adds.
func plainURL(r *http.Request) string {
	u := *r.URL
	u.RawQuery = ""
	return u.String()
}

// mostJudged is the number of bytes read from a first response.
const mostJudged = 4 << 20

// judge reads the body of a first response and checks the response. It makes the body readable again.
func (l *listener) judge(where string, response *http.Response) {
	body, err := io.ReadAll(io.LimitReader(response.Body, mostJudged))
	rest := io.Reader(response.Body)
	if err != nil { // the part of the body that arrived may explain the error
		rest = failing{err}
	}
	response.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(body), rest), response.Body}
	wrong := l.wrongAnswer(where, response, body)
	l.mu.Lock()
	defer l.mu.Unlock()
	if errors.As(wrong, new(failure)) && l.failed[where] < mostFailures-1 {
		l.failed[where]++
		return
	}
	l.heard[where] = true
	if wrong != nil {
		l.fail(wrong)
	}
}

// mostFailures is how many failed responses of a URL end the run, if none has succeeded before. A webhook may fail for
// some objects, so one failed response does not prove that the server is not a webhook.
const mostFailures = 5

// A failure is the error for a failed response that may come from a webhook.
type failure struct{ error }

// Unwrap returns the error with its hints.
func (f failure) Unwrap() error { return f.error }

// failing is a reader that returns the error of an interrupted body.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// wrongAnswer returns an error for a response that does not come from a webhook. It returns nil for errors of a handler
// and for malformed reviews, because the report shows these as failures of a law.
func (l *listener) wrongAnswer(where string, response *http.Response, body []byte) error {
	target := response.Header.Get("Location")
	switch status := response.StatusCode; status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther:
		err := problem.New("%s answers with HTTP %d, a redirect to %s, which the API server follows with a GET that carries no review", where, status, target)
		if u, bad := response.Location(); bad == nil {
			u.RawQuery = ""
			err = err.Hint("--url %s", u)
		}
		return err
	case http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		l.note("%s redirects every call to %s, and the API server follows", where, target)
		return nil
	case http.StatusNotFound, http.StatusMethodNotAllowed:
		return l.wrongPath(where, status, body)
	case http.StatusUnauthorized, http.StatusForbidden:
		return problem.New("%s requires authentication: HTTP %d%s", where, status, quotation(body)).
			Hint("--client-cert FILE --client-key FILE, or --token-file FILE, with the credentials of the API server")
	case http.StatusBadRequest:
		if speaksTLS(response.Request) {
			return wantsTLS(where)
		}
	case http.StatusInternalServerError: // an error of the handler
		return nil
	}
	if len(body) == mostJudged || isReview(body) {
		return nil
	}
	ok := response.StatusCode >= 200 && response.StatusCode <= 299
	instead := description(response, body)
	if !ok {
		instead = fmt.Sprintf("HTTP %d with %s", response.StatusCode, instead)
	}
	err := problem.New("%s does not answer as a webhook: expected an AdmissionReview with a response, not %s", where, instead).
		Hint("check the URL: it must answer a POST of an AdmissionReview with an AdmissionReview (docs/verify.md)")
	if !ok {
		return failure{err}
	}
	return err
}

func (l *listener) wrongPath(where string, status int, body []byte) error {
	err := problem.New("%s answers with HTTP %d%s: is that the path of the webhook?", where, status, quotation(body))
	c := l.hook.ClientConfig
	if path := pathOf(l.hook); (c.URL != nil || c.Service != nil) && path != traffic.PathOfURL(where) {
		server := strings.TrimSuffix(where, traffic.PathOfURL(where))
		return err.Hint("the path in the configuration: --url %s%s", strings.TrimSuffix(server, "/"), path)
	}
	return err
}

// redirected implements CheckRedirect of http.Client. It ends the run after ten redirects.
func (l *listener) redirected(r *http.Request, via []*http.Request) error {
	if len(via) < 10 {
		return nil
	}
	err := problem.New("%s redirects too often, at last to %s", plainURL(via[0]), plainURL(r))
	l.fail(err)
	return err
}

// isReview reports whether a response looks like an AdmissionReview, even a malformed one.
func isReview(body []byte) bool {
	var answer map[string]any
	if json.Unmarshal(body, &answer) != nil && yaml.Unmarshal(body, &answer) != nil {
		return false
	}
	_, is := answer["response"]
	return is || answer["kind"] == "AdmissionReview"
}

// description describes a response that is not an AdmissionReview.
func description(response *http.Response, body []byte) string {
	kind, _, _ := strings.Cut(response.Header.Get("Content-Type"), ";")
	switch text := quoted(body); {
	case len(bytes.TrimSpace(body)) == 0:
		return "an empty body"
	case kind != "":
		return fmt.Sprintf("%s that begins with %s", kind, text)
	default:
		return text
	}
}

func quotation(body []byte) string {
	if len(bytes.TrimSpace(body)) == 0 {
		return ""
	}
	return ", " + quoted(body)
}

// quoted returns the beginning of a text, quoted and on one line.
func quoted(body []byte) string {
	const most = 60
	text := strings.Join(strings.Fields(string(body[:min(len(body), 4*most)])), " ")
	if !utf8.ValidString(text) {
		text = strings.ToValidUTF8(text, "?")
	}
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most]) + "…"
	}
	return fmt.Sprintf("%q", text)
}
