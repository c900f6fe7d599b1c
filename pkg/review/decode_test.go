// SPDX-License-Identifier: Apache-2.0

package review

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/admitkit/admitkit/internal/jsonraw"
	"github.com/admitkit/admitkit/pkg/patch"
)

// v1 and v1beta1 return a review of the request as the API server writes it.
func v1(request string) string {
	return `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":` + request + `}`
}

func v1beta1(request string) string {
	return `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1beta1","request":` + request + `}`
}

// fullRequest has every field. The object was converted because of matchPolicy Equivalent.
const fullRequest = `{"uid":"0df28fbd-5f5f-11e8-bc74-36e6bb280816",` +
	`"kind":{"group":"autoscaling","version":"v1","kind":"Scale"},` +
	`"resource":{"group":"apps","version":"v1","resource":"deployments"},` +
	`"subResource":"scale",` +
	`"requestKind":{"group":"autoscaling","version":"v1beta1","kind":"Scale"},` +
	`"requestResource":{"group":"apps","version":"v1beta1","resource":"deployments"},` +
	`"requestSubResource":"scale",` +
	`"name":"web","namespace":"shop","operation":"UPDATE",` +
	`"userInfo":{"username":"ada","uid":"42","groups":["dev","system:authenticated"],"extra":{"scopes":["a","b"],"none":[]}},` +
	`"object":{"spec":{"replicas":3}},"oldObject":{"spec":{"replicas":2}},` +
	`"dryRun":true,"options":{"kind":"UpdateOptions","apiVersion":"meta.k8s.io/v1"}}`

func fullWant(v Version) Request {
	return Request{
		Version: v,
		Metadata: Metadata{
			UID:                "0df28fbd-5f5f-11e8-bc74-36e6bb280816",
			Kind:               metav1.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "Scale"},
			Resource:           metav1.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"},
			SubResource:        "scale",
			RequestKind:        metav1.GroupVersionKind{Group: "autoscaling", Version: "v1beta1", Kind: "Scale"},
			RequestResource:    metav1.GroupVersionResource{Group: "apps", Version: "v1beta1", Resource: "deployments"},
			RequestSubResource: "scale",
			Name:               "web",
			Namespace:          "shop",
			Operation:          admissionv1.Update,
			UserInfo: authenticationv1.UserInfo{
				Username: "ada",
				UID:      "42",
				Groups:   []string{"dev", "system:authenticated"},
				Extra:    map[string]authenticationv1.ExtraValue{"scopes": {"a", "b"}, "none": {}},
			},
			DryRun: true,
		},
		Object:    []byte(`{"spec":{"replicas":3}}`),
		OldObject: []byte(`{"spec":{"replicas":2}}`),
		Options:   []byte(`{"kind":"UpdateOptions","apiVersion":"meta.k8s.io/v1"}`),
	}
}

// reverseMembers is a review in which each member comes after the members that depend on it.
const reverseMembers = `{"request":{"object":{"a":1},"operation":"CREATE","kind":{"kind":"Pod","version":"v1","group":""},"uid":"u"},` +
	`"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}`

// nullMembers has null for every member that may be null.
const nullMembers = `{"uid":"u","kind":null,"resource":null,"subResource":null,"requestKind":null,"requestResource":null,` +
	`"requestSubResource":null,"name":null,"namespace":null,"operation":null,"userInfo":null,"object":null,"oldObject":null,` +
	`"dryRun":null,"options":null}`

type accepted struct {
	reason reason
	body   string
	want   Request
}

var podKind = metav1.GroupVersionKind{Version: "v1", Kind: "Pod"}

var acceptedReviews = []accepted{
	{because("v1 with every field"), v1(fullRequest), fullWant(V1)},
	{because("v1beta1 has the same fields"), v1beta1(fullRequest), fullWant(V1beta1)},
	{because("the API server ends the body with a newline"), v1(fullRequest) + "\n", fullWant(V1)},
	{because("white space is free"), " \t\r\n" + strings.NewReplacer(`:{`, " :\n{ ", `","`, "\"\t,\r\n\"").Replace(v1(`{"uid":"u","name":"n"}`)) + " \n\n",
		want(func(r *Request) { r.Name = "n" })},
	{because("members come in any order"), reverseMembers, want(func(r *Request) {
		r.Kind, r.RequestKind, r.Operation, r.Object = podKind, podKind, admissionv1.Create, []byte(`{"a":1}`)
	})},
	{because("servers before 1.15 send no requestKind, requestResource and requestSubResource"),
		v1beta1(`{"uid":"u","kind":{"version":"v1","kind":"Pod"},"resource":{"version":"v1","resource":"pods"},"subResource":"status"}`),
		want(func(r *Request) {
			r.Version, r.Kind, r.RequestKind = V1beta1, podKind, podKind
			r.Resource = metav1.GroupVersionResource{Version: "v1", Resource: "pods"}
			r.RequestResource, r.SubResource, r.RequestSubResource = r.Resource, "status", "status"
		})},
	{because("an empty requestKind equals a missing one"), v1(`{"uid":"u","requestKind":{},"kind":{"version":"v1","kind":"Pod"}}`),
		want(func(r *Request) { r.Kind, r.RequestKind = podKind, podKind })},
	{because("a uid alone is enough"), v1(`{"uid":"u"}`), want(nil)},
	{because("null equals a missing member, everywhere"), v1(nullMembers), want(nil)},
	{because("null inside kind, resource and userInfo too"),
		v1(`{"uid":"u","kind":{"group":null,"version":null,"kind":null},"resource":{"resource":null},"userInfo":{"username":null,"uid":null,"groups":null,"extra":null}}`), want(nil)},
	{because("a null list element is an empty text"), v1(`{"uid":"u","userInfo":{"groups":[null,"g"],"extra":{"k":null,"l":[null]}}}`),
		want(func(r *Request) {
			r.UserInfo.Groups = []string{"", "g"}
			r.UserInfo.Extra = map[string]authenticationv1.ExtraValue{"k": nil, "l": {""}}
		})},
	{because("an empty list or map is not null"), v1(`{"uid":"u","userInfo":{"groups":[],"extra":{}}}`),
		want(func(r *Request) {
			r.UserInfo.Groups, r.UserInfo.Extra = []string{}, map[string]authenticationv1.ExtraValue{}
		})},
	{because("a delete has no object"), v1(`{"uid":"u","operation":"DELETE","object":null,"oldObject":{"a":1},"options":{"kind":"DeleteOptions"}}`),
		want(func(r *Request) {
			r.Operation, r.OldObject, r.Options = admissionv1.Delete, []byte(`{"a":1}`), []byte(`{"kind":"DeleteOptions"}`)
		})},
	{because("a connect has an object and no options"), v1(`{"uid":"u","operation":"CONNECT","object":{"kind":"PodExecOptions"},"oldObject":null,"options":null}`),
		want(func(r *Request) { r.Operation, r.Object = admissionv1.Connect, []byte(`{"kind":"PodExecOptions"}`) })},
	{because("dryRun is sent when false too"), v1(`{"uid":"u","dryRun":false}`), want(nil)},
	{because("unknown members are for newer servers, whatever they hold"),
		`{"x":[{"y":1e999}],` + v1(`{"new":{"uid":"no"},"uid":"u","kind":{"plural":"pods"},"resource":{"x":-0.1E-7},"userInfo":{"x":[[]]}}`)[1:], want(nil)},
	{because("names are case-sensitive"), v1(`{"uid":"u","UID":"no","Name":"no","dryrun":true,"userInfo":{"Groups":["no"]}}`), want(nil)},
	{because("a response in a request is not read"), `{"response":{"uid":7},` + v1(`{"uid":"u"}`)[1:], want(nil)},
	{because("the last of duplicate names counts"),
		`{"apiVersion":"v2","kind":"Pod",` + v1(`{"uid":"no","uid":"u","name":"no","name":"n","dryRun":true,"dryRun":false,"object":{"a":1},"object":{"b":2}}`)[1:],
		want(func(r *Request) { r.Name, r.Object = "n", []byte(`{"b":2}`) })},
	{because("duplicate requests merge"), v1(`{"uid":"u","name":"n","kind":{"kind":"Pod"}},"request":{"name":"m","kind":{"version":"v1"}}`),
		want(func(r *Request) { r.Name, r.Kind, r.RequestKind = "m", podKind, podKind })},
	{because("null keeps an earlier duplicate, as absence would"), v1(`{"uid":"u","uid":null,"name":"n","name":null,"object":{},"object":null}`),
		want(func(r *Request) { r.Name, r.Object = "n", []byte(`{}`) })},
	{because("null resets pointers, lists and maps of the API's Go types"),
		v1(`{"uid":"no","name":"no"},"request":null,"request":{"uid":"u","dryRun":true,"dryRun":null,` +
			`"requestKind":{"kind":"A","group":"g"},"requestKind":null,"requestKind":{"kind":"B"},` +
			`"userInfo":{"groups":["a"],"groups":null,"extra":{"k":["v"]},"extra":null}}`),
		want(func(r *Request) { r.RequestKind.Kind = "B" })},
	{because("duplicate lists and maps merge as in sigs.k8s.io/json"),
		v1(`{"uid":"u","userInfo":{"groups":["a","b"],"groups":[null],"groups":[null,null],"extra":{"k":["v"]},"extra":{"l":["w"]}}}`),
		want(func(r *Request) {
			r.UserInfo.Groups = []string{"a", "b"}
			r.UserInfo.Extra = map[string]authenticationv1.ExtraValue{"k": {"v"}, "l": {"w"}}
		})},
	{because("an empty list forgets its duplicate"), v1(`{"uid":"u","userInfo":{"groups":["a"],"groups":[],"groups":[null]}}`),
		want(func(r *Request) { r.UserInfo.Groups = []string{""} })},
	{because("escapes in names and values"), `{"\u006bind":"Admission\u0052eview","apiVersion":"admission.k8s.io\/v1","re\u0071uest":{"u\u0069d":"\u0075","name":"\"\\\b\f\n\r\t\u003c\ud83d\ude00"}}`,
		want(func(r *Request) { r.Name = "\"\\\b\f\n\r\t<😀" })},
	{because("invalid UTF-8 and lone surrogates become U+FFFD"), v1("{\"uid\":\"u\",\"name\":\"a\xff\xfeb\",\"namespace\":\"\\ud83d\\ud83dx\\ude00\"}"),
		want(func(r *Request) { r.Name, r.Namespace = "a\uFFFD\uFFFDb", "\uFFFD\uFFFDx\uFFFD" })},
	{because("documents stay as they were sent"), v1("{\"uid\":\"u\",\"object\": {\"a\" : 1e2,\"a\":\"\\u0041\xff\", \"n\":12345678901234567890} ,\"options\":\t[ ]\n}"),
		want(func(r *Request) {
			r.Object, r.Options = []byte("{\"a\" : 1e2,\"a\":\"\\u0041\xff\", \"n\":12345678901234567890}"), []byte("[ ]")
		})},
	{because("a document need not be an object"), v1(`{"uid":"u","object":"null","oldObject":-0,"options":false}`),
		want(func(r *Request) { r.Object, r.OldObject, r.Options = []byte(`"null"`), []byte(`-0`), []byte(`false`) })},
	{because("nesting up to the limit of sigs.k8s.io/json, of which the envelope takes two levels"), v1(`{"uid":"u","object":` + nested(jsonraw.MaxDepth-2) + `}`),
		want(func(r *Request) { r.Object = []byte(nested(jsonraw.MaxDepth - 2)) })},
}

func nested(depth int) string { return strings.Repeat("[", depth) + strings.Repeat("]", depth) }

// want returns a request of version v1 with uid u, after the changes of set.
func want(set func(r *Request)) Request {
	r := Request{Version: V1, Metadata: Metadata{UID: "u"}}
	if set != nil {
		set(&r)
	}
	return r
}

func TestDecode(t *testing.T) {
	for _, row := range acceptedReviews {
		row.reason.run(t, func(t *testing.T) {
			body := []byte(row.body)
			got, err := Decode(body)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, &row.want) {
				t.Errorf("(-want +got)\n-%s\n+%s", show(&row.want), show(got))
			}
			if string(body) != row.body {
				t.Errorf("the body became %q", body)
			}
		})
	}
}

func TestDecodedDocumentsAreSubslicesOfTheBody(t *testing.T) {
	body := []byte(v1(fullRequest))
	r, err := Decode(body)
	if err != nil {
		t.Fatal(err)
	}
	for name, raw := range map[string][]byte{"object": r.Object, "oldObject": r.OldObject, "options": r.Options} {
		at := bytes.Index(body, raw)
		if &raw[0] != &body[at] {
			t.Errorf("%s is a copy, want a part of the body", name)
		}
		if cap(raw) != len(raw) {
			t.Errorf("%s has capacity %d, want its length %d, so that append leaves the body alone", name, cap(raw), len(raw))
		}
	}
	before := r.UID
	clear(body)
	if r.UID != before || r.UserInfo.Groups[0] != "dev" {
		t.Errorf("texts share memory with the body: uid %q, groups %q", r.UID, r.UserInfo.Groups)
	}
}

type refused struct {
	reason  reason
	body    string
	cause   error
	text    string // after "cannot read the AdmissionReview: "
	pointer patch.Pointer
	offset  int // -1 is the end of the body
	version Version
	uid     types.UID
}

var refusedReviews = []refused{
	{because("an empty body"), ``, ErrSyntax,
		`not JSON: unexpected end of JSON looking for the beginning of a value at byte 0`, "", 0, "", ""},
	{because("white space alone"), " \n", ErrSyntax,
		`not JSON: unexpected end of JSON looking for the beginning of a value at byte 2`, "", 2, "", ""},
	{because("not JSON at all"), `kind: AdmissionReview`, ErrSyntax,
		`not JSON: unexpected 'k' looking for the beginning of a value at byte 0`, "", 0, "", ""},
	{because("a byte order mark is not JSON"), "\ufeff" + v1(`{"uid":"u"}`), ErrSyntax,
		`not JSON: unexpected 'ï' looking for the beginning of a value at byte 0`, "", 0, "", ""},
	{because("truncated between members"), `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u",`, ErrSyntax,
		`request: not JSON: unexpected end of JSON looking for a member name at byte 82`, "/request", 82, V1, "u"},
	{because("truncated in a document, which is named"), `{"apiVersion":"admission.k8s.io/v1beta1","request":{"uid":"u","object":{"a":tru`, ErrSyntax,
		`request.object: not JSON: unexpected end of JSON in literal true at byte 79`, "/request/object", 79, V1beta1, "u"},
	{because("truncated before the closing brace"), strings.TrimSuffix(v1(`{"uid":"u"}`), "}"), ErrSyntax,
		`not JSON: unexpected end of JSON after an object member at byte 82`, "", 82, V1, "u"},
	{because("trailing bytes"), v1(`{"uid":"u"}`) + " x", ErrSyntax,
		`not JSON: unexpected 'x' after the document at byte 84`, "", 84, V1, "u"},
	{because("two documents"), v1(`{"uid":"u"}`) + "\n" + v1(`{"uid":"u2"}`), ErrSyntax,
		`not JSON: unexpected '{' after the document at byte 84`, "", 84, V1, "u"},
	{because("a trailing comma"), v1(`{"uid":"u",}`), ErrSyntax,
		`request: not JSON: unexpected '}' looking for a member name at byte 82`, "/request", 82, V1, "u"},
	{because("a control character in a text"), v1("{\"uid\":\"u\",\"name\":\"a\nb\"}"), ErrSyntax,
		`request.name: not JSON: unexpected '\n' in a string at byte 91`, "/request/name", 91, V1, "u"},
	{because("a broken escape"), v1(`{"uid":"u","name":"\u12x4"}`), ErrSyntax,
		`request.name: not JSON: unexpected 'x' in a \u escape at byte 94`, "/request/name", 94, V1, "u"},
	{because("an unknown member must be valid JSON"), v1(`{"uid":"u","new":01}`), ErrSyntax,
		`request: not JSON: unexpected '1' after an object member at byte 89`, "/request", 89, V1, "u"},
	{because("nested too deep"), v1(`{"uid":"u","object":` + nested(jsonraw.MaxDepth-1) + `}`), ErrSyntax,
		`request.object: not JSON: nested deeper than 10000 levels at byte 10089`, "/request/object", 10089, V1, "u"},

	{because("a number for a text"), v1(`{"name":7,"uid":"u"}`), ErrShape,
		`request.name: wrong type: want string, got number at byte 79`, "/request/name", 79, V1, ""},
	{because("a number for a uid"), v1(`{"uid": 7}`), ErrShape,
		`request.uid: wrong type: want string, got number at byte 79`, "/request/uid", 79, V1, ""},
	{because("a text for an object"), v1(`{"uid":"u","kind":"Pod"}`), ErrShape,
		`request.kind: wrong type: want object, got string at byte 89`, "/request/kind", 89, V1, "u"},
	{because("a text for a boolean"), v1(`{"uid":"u","dryRun":"true"}`), ErrShape,
		`request.dryRun: wrong type: want boolean, got string at byte 91`, "/request/dryRun", 91, V1, "u"},
	{because("a list element is named by its index"), v1(`{"uid":"u","userInfo":{"groups":["a",{}]}}`), ErrShape,
		`request.userInfo.groups[1]: wrong type: want string, got object at byte 108`, "/request/userInfo/groups/1", 108, V1, "u"},
	{because("names from the request are escaped in pointers"), v1(`{"uid":"u","userInfo":{"extra":{"a/b~c":true}}}`), ErrShape,
		`request.userInfo.extra[a/b~c]: wrong type: want array, got boolean at byte 111`, "/request/userInfo/extra/a~1b~0c", 111, V1, "u"},
	{because("a list for the request"), v1(`[{"uid":"u"}]`), ErrShape,
		`request: wrong type: want object, got array at byte 71`, "/request", 71, V1, ""},
	{because("a number for the version"), `{"kind":"AdmissionReview","apiVersion":1,"request":{"uid":"u"}}`, ErrShape,
		`apiVersion: wrong type: want string, got number at byte 39`, "/apiVersion", 39, "", ""},
	{because("the first fault counts, and what comes after it is unknown"), `{"request":{"dryRun":0,"uid":"u"},"apiVersion":"admission.k8s.io/v1"}`, ErrShape,
		`request.dryRun: wrong type: want boolean, got number at byte 21`, "/request/dryRun", 21, "", ""},

	{because("null"), `null`, ErrNotReview, `not an AdmissionReview`, "", -1, "", ""},
	{because("a list"), `[{}]`, ErrNotReview, `not an AdmissionReview`, "", -1, "", ""},
	{because("an object without kind"), `{}`, ErrNotReview, `not an AdmissionReview: kind is ""`, "", -1, "", ""},
	{because("another kind"), `{"kind":"Pod","apiVersion":"v1"}`, ErrNotReview, `not an AdmissionReview: kind is "Pod"`, "", -1, "", ""},
	{because("a kind that differs in case"), `{"kind":"admissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u"}}`, ErrNotReview,
		`not an AdmissionReview: kind is "admissionReview"`, "", -1, V1, "u"},
	{because("a newer version"), `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v2","request":{"uid":"u"}}`, ErrVersion,
		`apiVersion: unknown AdmissionReview version: "admission.k8s.io/v2" is neither admission.k8s.io/v1 nor admission.k8s.io/v1beta1`, "/apiVersion", -1, "", "u"},
	{because("a version without group"), `{"kind":"AdmissionReview","apiVersion":"v1","request":{"uid":"u"}}`, ErrVersion,
		`apiVersion: unknown AdmissionReview version: "v1" is neither admission.k8s.io/v1 nor admission.k8s.io/v1beta1`, "/apiVersion", -1, "", "u"},
	{because("no version"), `{"kind":"AdmissionReview","request":{"uid":"u"}}`, ErrVersion,
		`apiVersion: unknown AdmissionReview version: "" is neither admission.k8s.io/v1 nor admission.k8s.io/v1beta1`, "/apiVersion", -1, "", "u"},
	{because("no request"), `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1"}`, ErrNoRequest, `request: no request`, "/request", -1, V1, ""},
	{because("a null request, which takes an earlier duplicate with it"), v1beta1(`{"uid":"u"},"request":null`), ErrNoRequest, `request: no request`, "/request", -1, V1beta1, ""},
	{because("a request of the wrong case"), `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","Request":{"uid":"u"}}`, ErrNoRequest, `request: no request`, "/request", -1, V1, ""},
	{because("no uid"), v1(`{}`), ErrNoUID, `request.uid: no uid`, "/request/uid", -1, V1, ""},
	{because("an empty uid"), v1beta1(`{"uid":""}`), ErrNoUID, `request.uid: no uid`, "/request/uid", -1, V1beta1, ""},
	{because("a null uid"), v1(`{"uid":null}`), ErrNoUID, `request.uid: no uid`, "/request/uid", -1, V1, ""},
}

func TestDecodeRefuses(t *testing.T) {
	for _, row := range refusedReviews {
		row.reason.run(t, func(t *testing.T) {
			if row.offset < 0 {
				row.offset = len(row.body)
			}
			_, err := Decode([]byte(row.body))
			var got *Error
			if !errors.As(err, &got) {
				t.Fatalf("got %v, want an *Error", err)
			}
			if !errors.Is(err, row.cause) {
				t.Errorf("got cause %v, want %v", got.Err, row.cause)
			}
			if want := "cannot read the AdmissionReview: " + row.text; err.Error() != want {
				t.Errorf("(-want +got)\n-%s\n+%s", want, err)
			}
			if got.Pointer != row.pointer || got.Offset != row.offset {
				t.Errorf("got place %q at byte %d, want %q at byte %d", got.Pointer, got.Offset, row.pointer, row.offset)
			}
			if got.Version != row.version || got.UID != row.uid {
				t.Errorf("got version %q and uid %q, want %q and %q", got.Version, got.UID, row.version, row.uid)
			}
		})
	}
}

func TestErrorIsAnAPIStatus(t *testing.T) {
	_, err := Decode([]byte(v1(`{"uid":"u","userInfo":{"groups":[{}]}}`)))
	const cause = `wrong type: want string, got object`
	want := metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   "Failure", Code: 400, Reason: "BadRequest",
		Message: `cannot read the AdmissionReview: request.userInfo.groups[0]: ` + cause + ` at byte 104`,
		Details: &metav1.StatusDetails{Group: "admission.k8s.io", Kind: "AdmissionReview", UID: "u", Causes: []metav1.StatusCause{
			{Type: "FieldValueInvalid", Field: "request.userInfo.groups[0]", Message: cause},
		}},
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		t.Fatalf("got %T, want an APIStatus", err)
	}
	if got := status.Status(); !reflect.DeepEqual(got, want) {
		t.Errorf("(-want +got)\n-%+v\n+%+v", want, got)
	}
	if !apierrors.IsBadRequest(err) {
		t.Error("apierrors.IsBadRequest is false")
	}
}
