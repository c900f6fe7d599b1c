// SPDX-License-Identifier: Apache-2.0

package review

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestDenyCompletesTheStatus(t *testing.T) {
	for _, row := range []struct {
		reason  reason
		in      metav1.Status
		code    int32
		why     metav1.StatusReason
		message string
	}{
		{because("nothing given"), metav1.Status{}, 403, "Forbidden", "Forbidden"},
		{because("a message alone"), metav1.Status{Message: "no"}, 403, "Forbidden", "no"},
		{because("a whole status stays"), metav1.Status{Code: 404, Reason: "NotFound", Message: "no"}, 404, "NotFound", "no"},
		{because("code and reason are the author's, even when they do not match"), metav1.Status{Code: 422, Reason: "Conflict", Message: "no"}, 422, "Conflict", "no"},
		{because("a code that is not an HTTP error is replaced by the code of the reason"), metav1.Status{Code: 200, Reason: "Invalid"}, 422, "Invalid", "Invalid"},
		{because("a missing code follows from the reason"), metav1.Status{Reason: "Expired"}, 410, "Expired", "Expired"},
		{because("an unknown reason is kept"), metav1.Status{Reason: "PolicyViolation"}, 403, "PolicyViolation", "PolicyViolation"},
		{because("a negative code"), metav1.Status{Code: -1, Message: "no"}, 403, "Forbidden", "no"},
		{because("just below the errors"), metav1.Status{Code: 399, Message: "no"}, 403, "Forbidden", "no"},
		{because("the lowest error"), metav1.Status{Code: 400, Message: "no"}, 400, "BadRequest", "no"},
		{because("the highest error"), metav1.Status{Code: 599, Message: "no"}, 599, "Unknown", "no"},
		{because("just above the errors"), metav1.Status{Code: 600, Reason: "Gone", Message: "no"}, 410, "Gone", "no"},
		{because("a code that crashes the API server's request handler"), metav1.Status{Code: 1000, Message: "no"}, 403, "Forbidden", "no"},
		{because("of the two reasons for 409 the general one"), metav1.Status{Code: 409, Message: "no"}, 409, "Conflict", "no"},
		{because("of the two reasons for 410 the general one"), metav1.Status{Code: 410, Message: "no"}, 410, "Gone", "no"},
		{because("of the two reasons for 500 the general one"), metav1.Status{Code: 500, Message: "no"}, 500, "InternalError", "no"},
		{because("an HTTP error without a Kubernetes reason gets the name of HTTP"), metav1.Status{Code: 451, Message: "no"}, 451, "UnavailableForLegalReasons", "no"},
		{because("such a name has no punctuation"), metav1.Status{Code: 418, Message: "no"}, 418, "Imateapot", "no"},
		{because("a code without a name"), metav1.Status{Code: 499, Message: "no"}, 499, "Unknown", "no"},
		{because("a blank reason and message count as missing"), metav1.Status{Code: 409, Reason: " ", Message: "\n\t "}, 409, "Conflict", "Conflict"},
		{because("status.status of a denial is Failure"), metav1.Status{Status: "Success", Message: "no"}, 403, "Forbidden", "no"},
		{because("the kind is known from the place"), metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Message: "no"}, 403, "Forbidden", "no"},
	} {
		row.reason.run(t, func(t *testing.T) {
			want := metav1.Status{Status: "Failure", Code: row.code, Reason: row.why, Message: row.message}
			d := Deny(row.in)
			if d.Allowed() {
				t.Error("got allowed, want denied")
			}
			if got := *d.Denial(); !reflect.DeepEqual(got, want) {
				t.Errorf("(-want +got)\n-%+v\n+%+v", want, got)
			}
		})
	}
}

// TestReasonsHaveTheCodesOfTheAPI checks that a denial with only a reason gets the code that the constructors of
// package apierrors use for this reason.
func TestReasonsHaveTheCodesOfTheAPI(t *testing.T) {
	pods, pod := schema.GroupResource{Resource: "pods"}, schema.GroupKind{Kind: "Pod"}
	for _, err := range []*apierrors.StatusError{
		apierrors.NewUnauthorized(""),
		apierrors.NewForbidden(pods, "a", nil),
		apierrors.NewNotFound(pods, "a"),
		apierrors.NewConflict(pods, "a", nil),
		apierrors.NewGone(""), //nolint:staticcheck // deprecated, and yet a reason
		apierrors.NewInvalid(pod, "a", nil),
		apierrors.NewTimeoutError("", 1),
		apierrors.NewTooManyRequests("", 1),
		apierrors.NewBadRequest(""),
		apierrors.NewMethodNotSupported(pods, "get"),
		apierrors.NewGenericServerResponse(http.StatusNotAcceptable, "get", pods, "a", "", 0, false),
		apierrors.NewRequestEntityTooLargeError(""),
		apierrors.NewGenericServerResponse(http.StatusUnsupportedMediaType, "get", pods, "a", "", 0, false),
		apierrors.NewInternalError(errors.New("")),
		apierrors.NewServiceUnavailable(""),
		apierrors.NewAlreadyExists(pods, "a"),
		apierrors.NewResourceExpired(""),
		apierrors.NewServerTimeout(pods, "get", 1),
	} {
		want := err.ErrStatus
		if got := Deny(metav1.Status{Reason: want.Reason}).Denial().Code; got != want.Code {
			t.Errorf("%s: got code %d, want %d", want.Reason, got, want.Code)
		}
		switch want.Reason {
		case metav1.StatusReasonAlreadyExists, metav1.StatusReasonExpired, metav1.StatusReasonServerTimeout:
			continue // a code alone does not imply these reasons
		}
		if got := Deny(metav1.Status{Code: want.Code}).Denial().Reason; got != want.Reason {
			t.Errorf("%d: got reason %s, want %s", want.Code, got, want.Reason)
		}
	}
}

func TestDenyCopiesTheDetails(t *testing.T) {
	in := metav1.Status{Details: &metav1.StatusDetails{Name: "web", RetryAfterSeconds: 3, Causes: []metav1.StatusCause{{Field: "spec.replicas"}}}}
	want := in.Details.DeepCopy()
	d := Deny(in)
	in.Details.Causes[0].Field = "changed"
	if got := d.Denial().Details; !reflect.DeepEqual(got, want) {
		t.Errorf("(-want +got)\n-%+v\n+%+v", want, got)
	}
}

func TestDenyKeepsWarningsAndAnnotations(t *testing.T) {
	d := Allow()
	d.Warn("w")
	if err := d.Audit("k", "v"); err != nil {
		t.Fatal(err)
	}
	if !d.Allowed() || d.Denial() != nil {
		t.Errorf("Allow gave %+v", d)
	}
	d.Deny(metav1.Status{Message: "first"})
	d.Deny(metav1.Status{Message: "second"})
	if d.Allowed() || d.Denial().Message != "second" || len(d.Warnings()) != 1 || len(d.AuditAnnotations()) != 1 {
		t.Errorf("got %+v", d)
	}
}

func TestWarn(t *testing.T) {
	x := func(n int) string { return strings.Repeat("x", n) }
	for _, row := range []struct {
		reason reason
		in     []string
		want   []string
	}{
		{because("nothing to say"), []string{"", " ", "\n\n", "\t\x00"}, nil},
		{because("as it is"), []string{`use "v2", not <v1> \ `}, []string{`use "v2", not <v1> \`}},
		{because("in the order given"), []string{"b", "a"}, []string{"b", "a"}},
		{because("a line is a warning"), []string{"a\nb\r\n\nc\n"}, []string{"a", "b", "c"}},
		{because("the API server drops a text with a control character"), []string{"a\tb\x00c\u0085d\x7fe"}, []string{"a b c d e"}},
		{because("white space collapses"), []string{"  a   b\u2028c\u00a0d "}, []string{"a b c d"}},
		{because("the API server drops a text that is not UTF-8"), []string{"a\xff\xfeb"}, []string{"a\uFFFDb"}},
		{because("120 characters fit"), []string{x(120)}, []string{x(120)}},
		{because("a longer word is broken"), []string{x(121)}, []string{x(120), "x"}},
		{because("a long word begins a line of its own, and words may follow its end"), []string{"a " + x(130) + " b"}, []string{"a", x(120), x(10) + " b"}},
		{because("60 and 59 with the space are 120"), []string{x(60) + " " + strings.Repeat("y", 59)}, []string{x(60) + " " + strings.Repeat("y", 59)}},
		{because("60 and 60 with the space are too many"), []string{x(60) + " " + strings.Repeat("y", 60)}, []string{x(60), strings.Repeat("y", 60)}},
		{because("characters are counted, not bytes"), []string{strings.Repeat("€", 121)}, []string{strings.Repeat("€", 120), "€"}},
		{because("repeated lines collapse, as they do in the API server"), []string{"a\nb\na", "b", "c"}, []string{"a", "b", "c"}},
	} {
		row.reason.run(t, func(t *testing.T) {
			d := Allow()
			for _, text := range row.in {
				d.Warn(text)
			}
			if got := d.Warnings(); !slices.Equal(got, row.want) {
				t.Errorf("(-want +got)\n-%q\n+%q", row.want, got)
			}
		})
	}
}

// TestWarnStopsAt4096Characters checks that Warn keeps the warnings of a decision within 4096 characters together.
// Above that, the API server would truncate every warning of the request.
func TestWarnStopsAt4096Characters(t *testing.T) {
	line := func(i int) string { return fmt.Sprintf("%03d%s", i, strings.Repeat("€", 125)) } // two warnings: 120 and 8 characters
	d := Allow()
	for i := range 40 {
		d.Warn(line(i))
	}
	var total int
	for _, w := range d.Warnings() {
		total += len([]rune(w))
	}
	// The second warning of each line is the same, so it is kept once: 8 + 34 × 120 = 4088.
	if len(d.Warnings()) != 35 || total != 4088 {
		t.Fatalf("got %d warnings of %d characters, want 35 of 4088", len(d.Warnings()), total)
	}
	d.Warn("short")
	if got := d.Warnings(); len(got) != 35 {
		t.Errorf("got %q after something longer was left out, want nothing more", got[35:])
	}

	full := Allow()
	for i := range 33 {
		full.Warn(fmt.Sprintf("%02d%s", i, strings.Repeat("x", 118)))
	}
	full.Warn(strings.Repeat("y", 4096-33*120))
	full.Warn("z")
	full.Warn(strings.Repeat("long\nlines\n", 1<<16))
	if got := full.Warnings(); len(got) != 35 || got[34] != strings.Repeat("y", 16) {
		t.Errorf("got %d warnings, want 35 that fill the budget to the last character", len(got))
	}
}

func TestAudit(t *testing.T) {
	for _, row := range []struct {
		reason reason
		key    string
		err    string
	}{
		{because("a word"), "policy", ""},
		{because("every kind of character"), "Pod-Policy_v1.2", ""},
		{because("one character"), "1", ""},
		{because("63 characters"), strings.Repeat("k", 63), ""},
		{because("64 characters"), strings.Repeat("k", 64), `audit annotation key "` + strings.Repeat("k", 64) + `": name part must be no more than 63 bytes`},
		{because("the API server adds the prefix"), "example.com/policy", `audit annotation key "example.com/policy": the API server adds the prefix itself, so it must not contain a slash`},
		{because("no key"), "", `audit annotation key "": name part must be non-empty; ` + mustConsist},
		{because("a space"), "a b", `audit annotation key "a b": ` + mustConsist},
		{because("a dash at the end"), "a-", `audit annotation key "a-": ` + mustConsist},
		{because("a dot at the start"), ".a", `audit annotation key ".a": ` + mustConsist},
		{because("letters beyond ASCII"), "clé", `audit annotation key "clé": ` + mustConsist},
		{because("not UTF-8"), "a\xffb", `audit annotation key "a\xffb": ` + mustConsist},
	} {
		row.reason.run(t, func(t *testing.T) {
			d := Allow()
			err := d.Audit(row.key, "value")
			if got := fmt.Sprint(err); row.err != "" && got != row.err || row.err == "" && err != nil {
				t.Errorf("(-want +got)\n-%s\n+%s", row.err, got)
			}
			if _, added := d.AuditAnnotations()[row.key]; added != (err == nil) || len(d.AuditAnnotations()) > 1 {
				t.Errorf("got annotations %v with error %v", d.AuditAnnotations(), err)
			}
		})
	}
	d := Allow()
	for _, value := range []string{"first", "last"} {
		if err := d.Audit("k", value); err != nil {
			t.Fatal(err)
		}
	}
	if want := map[string]string{"k": "last"}; !maps.Equal(d.AuditAnnotations(), want) {
		t.Errorf("got %v, want %v", d.AuditAnnotations(), want)
	}
}

const mustConsist = `name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character ` +
	`(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')`
