// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"encoding/json"
	"net/http"
	"sync"

	"github.com/admitkit/admitkit/pkg/review"
)

// P20: a correct patch in an incorrect AdmissionReview.

func envelopePatterns() []Case {
	return []Case{
		envelopeCase("P20 patchType missing", func(e *envelope) { delete(e.Response, "patchType") }).breaks("L8"),
		envelopeCase("P20 uid not copied", func(e *envelope) { e.Response["uid"] = "" }).breaks("L8"),
		envelopeCase("P20 apiVersion empty", func(e *envelope) { e.APIVersion = "" }).breaks("L8"),
		envelopeCase("P20 kind empty", func(e *envelope) { e.Kind = "" }).breaks("L8"),
		envelopeCase("P20 answers v1 to v1beta1", func(e *envelope) { e.APIVersion = review.V1.APIVersion() }).breaks("L8"),
		envelopeCase("P20 patchType without a patch", func(e *envelope) { e.Response["patchType"] = "JSONPatch" }).breaks("L8"),
		envelopeCase("P20 no patch for v1beta1", func(e *envelope) {
			if e.APIVersion == review.V1beta1.APIVersion() {
				delete(e.Response, "patch")
				delete(e.Response, "patchType")
			}
		}).breaks("L8"),
		envelopesCase("P20 answers in the version of the first review", func() func(*envelope) {
			var once sync.Once
			var first string
			return func(e *envelope) {
				once.Do(func() { first = e.APIVersion })
				e.APIVersion = first
			}
		}).breaks("L8"),
	}
}

func envelopeLookalikes() []Case {
	return []Case{
		envelopeCase("P20 envelope by hand", func(*envelope) {}),
		envelopeCase("P20 answers v1, asks for v1 only", func(e *envelope) { e.APIVersion = review.V1.APIVersion() }).
			registered(onlyVersion("v1")),
	}
}

// An envelope is an AdmissionReview that may have any fields, including wrong ones.
type envelope struct {
	APIVersion string         `json:"apiVersion,omitempty"`
	Kind       string         `json:"kind,omitempty"`
	Response   map[string]any `json:"response"`
}

// envelopeCase returns a case that mounts a token and passes its response through spoil.
func envelopeCase(name string, spoil func(*envelope)) Case {
	return envelopesCase(name, func() func(*envelope) { return spoil })
}

// envelopesCase returns a case as envelopeCase does, but every instance gets a spoil function with its own state.
func envelopesCase(name string, newSpoil func() func(*envelope)) Case {
	return podCase(name, func() http.Handler {
		spoil := newSpoil()
		return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			serve(w, req, func(r *review.Request) ([]byte, error) {
				e, err := answer(r)
				if err != nil {
					return nil, err
				}
				spoil(e)
				return json.Marshal(e)
			})
		})
	})
}

// answer returns the correct response to a request.
func answer(r *review.Request) (*envelope, error) {
	d, p, err := pods(tokenMounted).decide(r)
	if err != nil {
		return nil, err
	}
	response := map[string]any{"uid": r.UID, "allowed": d.Allowed()}
	if len(p) > 0 {
		response["patch"] = p.AppendJSON(nil) // encoding/json writes a []byte in base64
		response["patchType"] = "JSONPatch"
	}
	if !d.Allowed() {
		response["status"] = d.Denial()
	}
	return &envelope{APIVersion: r.Version.APIVersion(), Kind: "AdmissionReview", Response: response}, nil
}
