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

	"github.com/admitkit/admitkit/internal/problem"
)

// A listener looks at the first answer of each server. What is wrong there is a wrong URL, mostly, and no
// law that is broken: it ends the run.
type listener struct {
	*runner
	hook  hook
	token string
	next  http.RoundTripper

	mu     sync.Mutex
	heard  map[string]bool // servers that answered as a webhook may, by URL
	failed map[string]int  // how often the others gave another answer
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

// plainURL is the URL without the timeout that the API server adds.
func plainURL(r *http.Request) string {
	u := *r.URL
	u.RawQuery = ""
	return u.String()
}

// mostJudged bounds what is read of a first answer.
const mostJudged = 4 << 20

// judge looks at a first answer, and puts back what it read of it.
func (l *listener) judge(where string, response *http.Response) {
	body, err := io.ReadAll(io.LimitReader(response.Body, mostJudged))
	rest := io.Reader(response.Body)
	if err != nil { // what came may say why
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

// mostFailures is how many failures in a row are no webhook, if they are the first answers: a webhook may fail at
// an object.
const mostFailures = 5

// A failure is an answer that may be that of a webhook which failed.
type failure struct{ error }

// Unwrap gives what it is, with its hints.
func (f failure) Unwrap() error { return f.error }

// failing is the rest of a body that broke off.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// wrongAnswer says why an answer is not that of a webhook, or is nil: errors of a handler and bad reviews are
// a matter of the laws.
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
		l.note("%s redirects to %s, each time anew, which the API server follows", where, target)
		return nil
	case http.StatusNotFound, http.StatusMethodNotAllowed:
		return l.wrongPath(where, status, body)
	case http.StatusUnauthorized, http.StatusForbidden:
		return problem.New("%s wants to know who calls: HTTP %d%s", where, status, quotation(body)).
			Hint("--client-cert FILE --client-key FILE, or --token-file FILE, as the API server has them")
	case http.StatusBadRequest:
		if speaksTLS(response.Request) {
			return wantsTLS(where)
		}
	case http.StatusInternalServerError: // a handler that raised an error
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
	err := problem.New("%s does not answer as a webhook does: an AdmissionReview with a response is wanted, not %s", where, instead).
		Hint("is the URL right? it has to answer a POST of an AdmissionReview with one: docs/verify.md")
	if !ok {
		return failure{err}
	}
	return err
}

func (l *listener) wrongPath(where string, status int, body []byte) error {
	err := problem.New("%s answers with HTTP %d%s: is that the path of the webhook?", where, status, quotation(body))
	c := l.hook.ClientConfig
	if path := pathOf(l.hook); (c.URL != nil || c.Service != nil) && path != pathOfURL(where) {
		server := strings.TrimSuffix(where, pathOfURL(where))
		return err.Hint("the configuration says --url %s%s", strings.TrimSuffix(server, "/"), path)
	}
	return err
}

// redirected is for http.Client.
func (l *listener) redirected(r *http.Request, via []*http.Request) error {
	if len(via) < 10 {
		return nil
	}
	err := problem.New("%s redirects again and again, to %s at last", plainURL(via[0]), plainURL(r))
	l.fail(err)
	return err
}

// isReview reports whether an answer is meant to be one of a webhook, however wrong it may be.
func isReview(body []byte) bool {
	var answer map[string]any
	if json.Unmarshal(body, &answer) != nil && yaml.Unmarshal(body, &answer) != nil {
		return false
	}
	_, is := answer["response"]
	return is || answer["kind"] == "AdmissionReview"
}

// description says in some words what an answer is instead.
func description(response *http.Response, body []byte) string {
	kind, _, _ := strings.Cut(response.Header.Get("Content-Type"), ";")
	switch text := quoted(body); {
	case len(bytes.TrimSpace(body)) == 0:
		return "nothing"
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

// quoted is the beginning of a text, on one line.
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
