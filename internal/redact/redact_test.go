// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestPublicValues requires that a secret equal to the name of an object is replaced in its field, and that the object
// keeps its name.
func TestPublicValues(t *testing.T) {
	object := `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web-frontend-7"},"spec":{"containers":[{"image":"r.example/web:v1.2.3-a7","env":[` +
		`{"name":"SECRET_TOKEN","value":"web-frontend-7"},{"name":"IMAGE_TOKEN","value":"r.example/web:v1.2.3-a7"}]}]}}`
	got, _ := redacted(t, redactor(t), reviewOf(object), "")
	for _, want := range []string{`"metadata":{"name":"web-frontend-7"}`, `"image":"r.example/web:v1.2.3-a7"`} {
		if strings.Count(got, want) != 1 {
			t.Errorf("no %s in %s", want, got)
		}
	}
	if strings.Count(got, "web-frontend-7") != 1 || strings.Count(got, "v1.2.3-a7") != 1 {
		t.Errorf("got %s", got)
	}
}

func writeFile(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func reviewOf(object string) string {
	return `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u-1","kind":{"group":"","version":"v1","kind":"Pod"},` +
		`"name":"web","namespace":"shop","operation":"CREATE","userInfo":{"username":"ada"},"object":` + object + `,"oldObject":null}}`
}

func redactor(t *testing.T, paths ...string) *Redactor {
	t.Helper()
	r, err := New(testKey(), paths)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// redacted returns the redacted request and answer.
func redacted(t *testing.T, r *Redactor, request, answer string) (string, string) {
	t.Helper()
	req, ans, err := r.Call([]byte(request), []byte(answer))
	if err != nil {
		t.Fatal(err)
	}
	if !json.Valid(req) || !json.Valid(ans) {
		t.Fatalf("not JSON: %s %s", req, ans)
	}
	return string(req), string(ans)
}

// TestCopyOfDocument requires that the copy of a secret is replaced if the secret is a JSON document, also one whose values
// are harmless and whose names are secret.
func TestCopyOfDocument(t *testing.T) {
	for _, secret := range []string{`{"aGVsbG8-key":true}`, `["0","geheim"]`, ` {"user":{"a":"0"}}`} {
		quoted := string(quote(secret))
		request, answer := redacted(t, redactor(t), reviewOf(`{"kind":"Secret","apiVersion":"v1","stringData":{"a":`+quoted+`},"metadata":{"annotations":{"copy":`+quoted+`}}}`),
			`{"response":{"uid":"u-1","allowed":false,"status":{"message":`+quoted+`},"warnings":["bad: `+strings.TrimPrefix(quoted, `"`)+`]}}`)
		for _, text := range []string{request, answer} {
			if inside := strings.Trim(quoted, `" `); strings.Contains(text, inside) {
				t.Errorf("%s is in %s", inside, text)
			}
		}
	}
}

// TestSecrets requires that a secret is replaced. In each object, SECRET is the place of the secret.
func TestSecrets(t *testing.T) {
	const jwt = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhZGEifQ.c2lnbmF0dXJl"
	for _, in := range []struct{ reason, secret, object string }{
		{"data of a Secret", base64.StdEncoding.EncodeToString([]byte("hunter2")), `{"kind":"Secret","apiVersion":"v1","data":{"a":"SECRET"}}`},
		{"the kind comes last", "aHVudGVyMg==", `{"apiVersion":"v1","data":{"a":"SECRET"},"kind":"Secret"}`},
		{"stringData", "hunter2", `{"kind":"Secret","apiVersion":"v1","stringData":{"username":"SECRET"}}`},
		{"data of a ConfigMap", "hunter2", `{"kind":"ConfigMap","apiVersion":"v1","data":{"a":"SECRET"}}`},
		{"binaryData", "aHVudGVyMg==", `{"kind":"ConfigMap","apiVersion":"v1","binaryData":{"a":"SECRET"}}`},
		{"a Secret in a custom resource", "aHVudGVyMg==", `{"spec":{"template":{"kind":"Secret","data":{"a":"SECRET"}}}}`},
		{"an environment variable", "hunter2", `{"spec":{"containers":[{"env":[{"name":"X","value":"SECRET"}]}]}}`},
		{"a map of variables", "hunter2", `{"spec":{"env":{"X":"SECRET"}}}`},
		{"a list of assignments", "hunter2", `{"spec":{"env":["X=SECRET"]}}`},
		{"a map of maps", "hunter2", `{"spec":{"env":{"X":{"value":"SECRET"}}}}`},
		{"environment variables of a custom resource", "hunter2", `{"spec":{"extraEnvVars":[{"name":"X","value":"SECRET"}]}}`},
		{"a flag", "hunter2", `{"spec":{"args":["--db-password=SECRET"]}}`},
		{"the argument after a flag", "hunter2", `{"spec":{"args":["--token","SECRET"]}}`},
		{"a flag in a script", "hunter2", `{"spec":{"command":["sh","-c","run --password SECRET && x"]}}`},
		{"a variable in a script", "hunter2", `{"spec":{"command":["sh","-c","PGPASSWORD=SECRET psql"]}}`},
		{"curl", "ada:hunter2", `{"spec":{"command":["curl","-u","SECRET"]}}`},
		{"mysql", "hunter2", `{"spec":{"args":["-pSECRET"]}}`},
		{"a header in an argument", "hunter2hunter2", `{"spec":{"args":["-H","Authorization: Bearer SECRET"]}}`},
		{"a header of a probe", "hunter2", `{"spec":{"httpGet":{"httpHeaders":[{"name":"X-Api-Key","value":"SECRET"}]}}}`},
		{"a field of a custom resource", "hunter2", `{"spec":{"auth":{"clientSecret":"SECRET"}}}`},
		{"a list in a custom resource", "hunter2", `{"spec":{"passwords":["SECRET","b"]}}`},
		{"a number", "739184", `{"spec":{"apiToken":SECRET}}`},
		{"an annotation", "hunter2", `{"metadata":{"annotations":{"example.com/api-token":"SECRET"}}}`},
		{"a JWT in an annotation", jwt, `{"metadata":{"annotations":{"a":"see SECRET here"}}}`},
		{"a key of a cloud", "AKIAIOSFODNN7EXAMPLE", `{"metadata":{"annotations":{"a":"SECRET"}}}`},
		{"a random text", "q7Rk2LmX9vT4bNc8WzY1pJ6hGd3FsA5e", `{"metadata":{"annotations":{"a":"SECRET"}}}`},
		{"a private key", `miievqibadan`, `{"metadata":{"annotations":{"a":"-----BEGIN PRIVATE KEY-----\nSECRET\n-----END PRIVATE KEY-----"}}}`},
		{"a bootstrap token", "0123456789abcdef", `{"metadata":{"annotations":{"a":"kubeadm join --token abcdef.SECRET x"}}}`},
		{"a URL with a password", "hunter2", `{"spec":{"url":"https://ada:SECRET@git.example/shop"}}`},
		{"a password with a slash", "hun/ter2", `{"spec":{"url":"https://ada:SECRET@git.example/shop"}}`},
		{"a URL in a sentence", "hunter2", `{"spec":{"text":"clone https://git.example/@x or https://ada:SECRET@git.example:443/@ada now"}}`},
		{"a URL with a token", "hunter2", `{"spec":{"url":"https://SECRET@git.example/shop"}}`},
		{"a parameter of a URL", "hunter2", `{"spec":{"url":"https://git.example/shop?access_token=SECRET&x=1"}}`},
		{"a data source name", "hunter2", `{"spec":{"source":"shop:SECRET@tcp(db:3306)/shop"}}`},
		{"last-applied-configuration", "hunter2", `{"metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":` +
			`"{\"kind\":\"Pod\",\"spec\":{\"containers\":[{\"env\":[{\"name\":\"X\",\"value\":\"SECRET\"}]}]}}\n"}}}`},
		{"last-applied-configuration that is not JSON", "hunter two", `{"metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"SECRET"}}}`},
		{"a Secret in last-applied-configuration", "aHVudGVyMg==", `{"metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":` +
			`"{\"apiVersion\":\"v1\",\"data\":{\"a\":\"SECRET\"},\"kind\":\"Secret\"}"}}}`},
		{"YAML in a string", "hunter2", `{"spec":{"manifest":"env:\n- name: X\n  value: SECRET\n"}}`},
		{"a Secret as YAML", "aHVudGVyMg==", `{"spec":{"manifest":"kind: Secret\ndata:\n  a: SECRET\n"}}`},
		{"a token review", "hunter2hunter2", `{"kind":"TokenReview","apiVersion":"authentication.k8s.io/v1","spec":{"token":"SECRET"}}`},
		{"the extra of a user", "hunter2", `{"kind":"SubjectAccessReview","spec":{"extra":{"a":["SECRET"]}}}`},
		{"a path of the user", "hunter2", `{"spec":{"users":[{"pin":"SECRET"}]}}`},
		{"a path of the user, to a number", "4711", `{"spec":{"users":[{"pin":SECRET}]}}`},
		{"a path of the user, to an object", "hunter2", `{"spec":{"hidden":{"deep":[{"a":"SECRET"}]}}}`},
		{"managedFields of a set", "swordfish", `{"metadata":{"managedFields":[{"fieldsV1":{"f:spec":{"f:tokens":{"v:\"SECRET\"":{}}}}}]},"spec":{"tokens":["SECRET"]}}`},
		{"managedFields of a set of numbers", "115303724637", `{"metadata":{"managedFields":[{"fieldsV1":{"f:spec":{"f:tokens":{"v:\"SECRET\"":{}}}}}]},"spec":{"tokens":["SECRET"]}}`},
		{"a base64 text with a secret", base64.StdEncoding.EncodeToString([]byte("password=hunter2")), `{"spec":{"blob":"SECRET"}}`},
	} {
		t.Run(in.reason, func(t *testing.T) {
			r := redactor(t, "spec.users[*].pin", "spec.hidden")
			request := reviewOf(strings.ReplaceAll(in.object, "SECRET", in.secret))
			got, _ := redacted(t, r, request, "")
			if strings.Contains(got, in.secret) {
				t.Errorf("it stays: %s", got)
			}
			if again, _ := redacted(t, r, request, ""); again != got {
				t.Errorf("it differs: %s", again)
			}
		})
	}
}

// TestPublic requires that a text without secrets does not change.
func TestPublic(t *testing.T) {
	for _, object := range []string{
		`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web","labels":{"env":"prod","environment":"prod"},"annotations":{"checksum/config":` +
			`"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"}},"spec":{"containers":[{"image":"r.example/a/token:v1@sha256:` +
			`9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08","env":[{"name":"A","valueFrom":{"secretKeyRef":{"name":"db","key":"password"}}},` +
			`{"name":"B","value":"$(A)"},{"name":"C","value":"true"}],"args":["--port=8080","-p","8080","--config=/etc/web"],"resources":{"limits":{"memory":"512Mi"}}}],` +
			`"imagePullSecrets":[{"name":"pull"}],"automountServiceAccountToken":true,"volumes":[{"name":"a","secret":{"secretName":"db"}},` +
			`{"name":"b","projected":{"sources":[{"serviceAccountToken":{"path":"token","expirationSeconds":3600}}]}}]}}`,
		`{"kind":"CustomResourceDefinition","spec":{"versions":[{"schema":{"openAPIV3Schema":{"properties":{"env":{"type":"object","description":"x"},` +
			`"password":{"type":"string"},"token":{"type":"string","x-kubernetes-validations":[{"rule":"self.token == oldSelf.token","message":"no"}]}},"required":["password"]}}}]}}`,
		`{"kind":"ValidatingWebhookConfiguration","webhooks":[{"clientConfig":{"caBundle":"` +
			base64.StdEncoding.EncodeToString([]byte("-----BEGIN CERTIFICATE-----\nMIIB9f86DQx8yZ1Kq2\n-----END CERTIFICATE-----\n")) + `"}}]}`,
		`{"kind":"ResourceQuota","spec":{"hard":{"secrets":"10","count/secrets":"10"}}}`,
		`{"kind":"RoleBinding","subjects":[{"kind":"User","name":"system:serviceaccount:secret:default"}]}`,
		`{"spec":{"url":"https://blog.example/@ada/post","other":"https://blog.example:443/@ada/post","mail":"ops@shop.example","text":"the bearer authentication of tokens"}}`,
		`{"spec":{"affinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"kubernetes.io/hostname"}]},"maxTokens":4096}}`,
		`{"kind":"Role","rules":[{"resources":["secrets"],"verbs":["get"]}]}`,
	} {
		if got, _ := redacted(t, redactor(t), reviewOf(object), ""); got != reviewOf(object) {
			t.Errorf("\n got %s\nwant %s", got, reviewOf(object))
		}
	}
}

// An answerTemplate is an answer of a hook that copies values of the request. H, F and Q stand for the values of three
// variables.
type answerTemplate struct {
	patch  string
	fields string // further fields of the response
	body   string // instead of a review
}

// with returns the answer with these values.
func (a answerTemplate) with(h, f, q string) string {
	values := strings.NewReplacer("{H}", h, "{F}", f, "{H in base64}", base64.StdEncoding.EncodeToString([]byte(h)),
		"{Q in quotes}", inner(strconv.Quote(strconv.Quote(q))), "{Q in a URL}", url.QueryEscape(q))
	if a.body != "" {
		return values.Replace(a.body)
	}
	fields := values.Replace(a.fields)
	if a.patch != "" {
		fields += fmt.Sprintf(`,"patchType":"JSONPatch","patch":"%s"`, base64.StdEncoding.EncodeToString([]byte(values.Replace(a.patch))))
	}
	return `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":"u-1","allowed":true` + fields + `}}`
}

// TestAnswers requires that the answer has the secrets of the request only as their pseudonyms, and that the patch has no
// other secrets.
func TestAnswers(t *testing.T) {
	const h, f, q = "hunter2", "swordfish", `p"q<r1`
	const object = `{"kind":"Pod","apiVersion":"v1","metadata":{"annotations":{"copy":"is hunter2!"}},"spec":{"containers":[{"name":"app",` +
		`"args":["--token"],"env":[{"name":"DB_PASSWORD","value":"hunter2"},{"name":"X","value":"swordfish"},{"name":"Y","value":"p\"q<r1"},` +
		`{"name":"MODE","value":"Always"}],"imagePullPolicy":"Always"}]}}`
	ph, pf, pq, geheim := testKey().pseudonym(h), testKey().pseudonym(f), testKey().pseudonym(q), testKey().pseudonym("geheim")
	for _, in := range []struct {
		reason     string
		answer     answerTemplate
		want, gone string
	}{
		{"a message", answerTemplate{fields: `,"status":{"message":"DB_PASSWORD is {H}"}`}, `"message":"DB_PASSWORD is ` + ph + `"`, h},
		{"a quoted value", answerTemplate{fields: `,"status":{"message":"Y is {Q in quotes}"}`}, pq, "q<r1"},
		{"a word in a message", answerTemplate{fields: `,"warnings":["X must not be {F}"]`}, `"X must not be ` + pf + `"`, f},
		{"an audit annotation", answerTemplate{fields: `,"auditAnnotations":{"x":"{H}"}`}, `"x":"` + ph + `"`, h},
		{"in base64", answerTemplate{fields: `,"auditAnnotations":{"x":"{H in base64}"}`}, base64.StdEncoding.EncodeToString([]byte(ph)), "aHVudGVyMg"},
		{"in a URL", answerTemplate{fields: `,"warnings":["see https://x.example/?y={Q in a URL}"]`}, pq, "q%3Cr1"},
		{"a new variable", answerTemplate{patch: `[{"op":"add","path":"/spec/containers/0/env/-","value":{"name":"Z","value":"geheim"}}]`}, geheim, "geheim"},
		{"the value of a variable", answerTemplate{patch: `[{"op":"replace","path":"/spec/containers/0/env/1/value","value":"geheim"}]`}, geheim, "geheim"},
		{"the value of an unknown variable", answerTemplate{patch: `[{"op":"replace","path":"/spec/containers/7/env/1/value","value":"geheim"}]`}, geheim, "geheim"},
		{"a new list of variables", answerTemplate{patch: `[{"op":"add","path":"/spec/initContainers","value":[{"env":[{"name":"Z","value":"geheim"}]}]}]`}, geheim, "geheim"},
		{"a variable with a copy", answerTemplate{patch: `[{"op":"add","path":"/spec/containers/0/env/-","value":{"name":"Z","value":"to-{H}"}}]`}, `"name":"Z"`, h},
		{"an argument after a flag", answerTemplate{patch: `[{"op":"add","path":"/spec/containers/0/args/-","value":"geheim"}]`}, geheim, "geheim"},
		{"two arguments", answerTemplate{patch: `[{"op":"add","path":"/spec/containers/9/args/-","value":"--password"},` +
			`{"op":"add","path":"/spec/containers/9/args/-","value":"geheim"}]`}, geheim, "geheim"},
		{"a copy in an annotation", answerTemplate{patch: `[{"op":"add","path":"/metadata/annotations/a","value":"{H}"}]`}, `"value":"` + ph + `"`, h},
		{"a copy in a path", answerTemplate{patch: `[{"op":"add","path":"/metadata/labels/{H}","value":"a"}]`}, `/metadata/labels/` + ph, h},
		{"the whole object", answerTemplate{patch: `[{"op":"replace","path":"","value":{"kind":"Pod","spec":{"env":{"A":"geheim"}}}}]`}, geheim, "geheim"},
		{"a path of the user", answerTemplate{patch: `[{"op":"replace","path":"/spec/users/0/pin","value":"geheim"}]`}, geheim, "geheim"},
		{"a patch that is not JSON", answerTemplate{patch: `oops {H}`}, `"patch":"`, base64.StdEncoding.EncodeToString([]byte("oops hunter2"))},
		{"a failure", answerTemplate{body: `{"kind":"Status","status":"Failure","message":"cannot log in with {H}","code":500}`}, `cannot log in with ` + ph, h},
		{"no JSON", answerTemplate{body: `panic: login with {H} failed`}, `"panic: login with ` + ph + ` failed"`, h},
		{"a word with another meaning", answerTemplate{patch: `[{"op":"add","path":"/spec/policy","value":"Always"}]`}, `"value":"Always"`, h},
	} {
		t.Run(in.reason, func(t *testing.T) {
			r := redactor(t, "/spec/users/*/pin")
			request, answer := redacted(t, r, reviewOf(object), in.answer.with(h, f, q))
			if !strings.Contains(answer, in.want) || strings.Contains(answer, in.gone) {
				t.Errorf("got %s, want %s", answer, in.want)
			}
			if !strings.Contains(request, `"copy":"is `+ph+`!"`) || !strings.Contains(request, `"imagePullPolicy":"Always"`) {
				t.Errorf("got the request %s", request)
			}
			// The same hook, called with the redacted request, must give the same redacted answer.
			again, err := r.Answer([]byte(request), []byte(in.answer.with(ph, pf, pq)))
			if err != nil || string(again) != answer && in.reason != "a patch that is not JSON" {
				t.Errorf("\nthe answer is %s (%v)\nwant          %s", again, err, answer)
			}
		})
	}
}

// TestOff requires that a redactor that is off changes nothing except the form of the patch.
func TestOff(t *testing.T) {
	const object = `{"kind":"Secret","apiVersion":"v1","data":{"a":"aHVudGVyMg=="}}`
	answer := answerTemplate{patch: `[{"op":"add","path":"/data/b","value":"aHVudGVyMg=="}]`}
	request, got := redacted(t, Off(), reviewOf(object), answer.with("", "", ""))
	if request != reviewOf(object) || !strings.Contains(got, `"patch":[{"op":"add","path":"/data/b","value":"aHVudGVyMg=="}]`) {
		t.Errorf("got %s %s", request, got)
	}
}

func TestPaths(t *testing.T) {
	for text, want := range map[string]path{
		"spec":                              {"spec"},
		"spec.users[*].pin":                 {"spec", "users", "*", "pin"},
		"metadata.annotations[a.example/b]": {"metadata", "annotations", "a.example/b"},
		"/spec/a~1b/*":                      {"spec", "a/b", "*"},
	} {
		if got, err := parsePath(text); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: got %q, %v", text, got, err)
		}
	}
	for _, text := range []string{"", ".", "a..b", "a[", "a[]", "a[b]c", ".a"} {
		if got, err := New(testKey(), []string{text}); err == nil || !strings.Contains(err.Error(), "field path") {
			t.Errorf("%q: got %v, %v", text, got, err)
		}
	}
}

// TestLongTexts requires that the time does not grow with the square of the size. A request of a user must not keep the
// CPU busy.
func TestLongTexts(t *testing.T) {
	const size = 2 << 20
	repeat := func(text string) string { return strings.Repeat(text, size/len(text)) }
	lines := ""
	for i := range maxLines {
		lines += fmt.Sprintf("aaaa%04d\\n", i)
	}
	began := time.Now()
	for reason, object := range map[string]string{
		"credentials on one line":   `{"a":"` + repeat("password: ") + `\n"}`,
		"references on one line":    `{"a":"` + repeat("password: ${a} ") + `\n"}`,
		"empty values on one line":  `{"a":"` + repeat(`password: '' `) + `\n"}`,
		"blocks on one line":        `{"a":"` + repeat("password: | ") + `\n"}`,
		"empty lines":               `{"a":"` + repeat("password:\\n") + `"}`,
		"credentials of registries": `{"a":"` + repeat("auth=") + `"}`,
		"tags":                      `{"a":"` + repeat("<password>") + `"}`,
		"cookies":                   `{"a":"` + repeat("cookie: 0 ") + `"}`,
		"one flag after another":    `{"args":["` + repeat("-u a:b -pa1 -p /a ") + `"]}`,
		"signs after addresses":     `{"a":"` + repeat("a://a:a,") + `"}`,
		"flags":                     `{"args":["` + repeat("--password x ") + `"]}`,
		"signs":                     `{"a":"` + repeat("@") + `"}`,
		"addresses":                 `{"a":"` + repeat("a://a:a@") + `"}`,
		"blocks":                    `{"a":"` + repeat("-----BEGIN A") + `"}`,
		"private keys":              `{"a":"` + repeat("-----BEGIN PRIVATE KEY-----") + `"}`,
		"quotes":                    `{"a":"` + repeat(`token='\"`) + `"}`,
		"base64":                    `{"a":"` + repeat("YWFh") + `"}`,
		"members":                   `{"kind":"Secret",` + repeat(`"env":0,`) + `"x":0}`,
		"documents in strings":      `{"a":"` + repeat("[") + `"}`,
		"copies":                    `{"kind":"ConfigMap","data":{"a":"` + lines + `","b":"x"},"spec":"` + repeat("aaaa") + `"}`,
		"a long name":               `{"` + repeat("a") + `":"b"}`,
		"variables with references": `{"env":[{"name":"A","value":"` + repeat("$(") + `"}]}`,
	} {
		if _, _, err := redactor(t).Call([]byte(reviewOf(object)), nil); err != nil && !errors.Is(err, ErrTooLarge) {
			t.Errorf("%s: %v", reason, err)
		}
		if took := time.Since(began); took > time.Minute {
			t.Fatalf("%s: it takes %s", reason, took)
		}
	}
}

// TestTooLarge requires that documents with too many values are refused, because they would need much memory.
func TestTooLarge(t *testing.T) {
	many := "[" + strings.Repeat("0,", MaxValues) + "0]"
	for _, in := range [][2]string{{reviewOf(many), ""}, {reviewOf("{}"), `{"response":` + many + `}`}} {
		if _, _, err := redactor(t).Call([]byte(in[0]), []byte(in[1])); !errors.Is(err, ErrTooLarge) {
			t.Errorf("got %v", err)
		}
	}
	for _, text := range []string{"", "{", "{}}", `{"a":}`} {
		if _, _, err := redactor(t).Call([]byte(text), nil); err == nil {
			t.Errorf("%q was accepted", text)
		}
	}
}
