// SPDX-License-Identifier: Apache-2.0

package realserver

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// FuzzTakeID adds an id to reviews with random users and objects, and checks that takeID removes exactly that id.
func FuzzTakeID(f *testing.F) {
	f.Add("jane", "team", "a", `{"x":"y"}`)
	f.Add(`"chain.admitkit/request":["x"]`, "a", "b", `{"userInfo":{"extra":{"chain.admitkit/request":["other"]}}}`)
	f.Add("", "zzz", "", `null`)
	f.Add("", "", "", `null`)
	f.Fuzz(func(t *testing.T, name, key, value, object string) {
		if !json.Valid([]byte(object)) || key == requestKey {
			return
		}
		user := authenticationv1.UserInfo{Username: name}
		if key != "" {
			user.Extra = map[string]authenticationv1.ExtraValue{key: {value}}
		}
		review := func(user authenticationv1.UserInfo) []byte {
			return encodeJSON(admissionv1.AdmissionReview{Request: &admissionv1.AdmissionRequest{
				UID: "1", Name: name, UserInfo: user, Object: runtime.RawExtension{Raw: []byte(object)},
			}})
		}
		id, without := takeID(review(withIDOnly(user, "e-1")))
		if id != "e-1" {
			t.Fatalf("id %q", id)
		}
		if diff := cmp.Diff(string(review(user)), string(without)); diff != "" {
			t.Error(diff)
		}
	})
}

// withIDOnly adds the id to a user. Unlike withID, it keeps a user without a name as it is.
func withIDOnly(user authenticationv1.UserInfo, id string) authenticationv1.UserInfo {
	name := user.Username
	if name == "" {
		user.Username = "nobody"
	}
	user = withID(user, id)
	user.Username = name
	return user
}

func TestContains(t *testing.T) {
	for _, test := range []struct {
		whole, part string
		want        bool
	}{
		{`{"a":1,"b":2}`, `{"a":1}`, true},
		{`{"a":1}`, `{"a":1,"b":2}`, false},
		{`{"a":1}`, `{"a":1,"b":{}}`, true},
		{`{"a":[{"n":"x","d":1}]}`, `{"a":[{"n":"x"}]}`, true},
		{`{"a":[1,2]}`, `{"a":[1]}`, false},
		{`{"a":"1"}`, `{"a":1}`, false},
		{`{}`, `{"a":{"b":[]}}`, true},
	} {
		var whole, part any
		if err := json.Unmarshal([]byte(test.whole), &whole); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(test.part), &part); err != nil {
			t.Fatal(err)
		}
		if got := contains(whole, part); got != test.want {
			t.Errorf("contains(%s, %s) = %t", test.whole, test.part, got)
		}
	}
}
