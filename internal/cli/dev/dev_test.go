// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/admitkit/admitkit/internal/cli/screen"
)

func request(kind, object, old string) *admissionv1.AdmissionRequest {
	return &admissionv1.AdmissionRequest{
		UID: "1", Kind: metav1.GroupVersionKind{Version: "v1", Kind: kind}, Resource: metav1.GroupVersionResource{Version: "v1", Resource: strings.ToLower(kind) + "s"},
		Operation: admissionv1.Create, Namespace: "shop", Name: "web", Object: runtime.RawExtension{Raw: []byte(object)}, OldObject: runtime.RawExtension{Raw: []byte(old)},
	}
}

const web = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web","managedFields":[{"manager":"x"}]},"spec":{"containers":[{"image":"app:v1","name":"app"},{"image":"b:v1","name":"b"}],"nodeName":"a"}}`

func TestAdmissionText(t *testing.T) {
	answer := func(response string) string {
		return `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":` + response + `}`
	}
	patch := func(operations string) string {
		text, err := json.Marshal([]byte(operations)) // base64
		if err != nil {
			t.Fatal(err)
		}
		return answer(`{"uid":"1","allowed":true,"patchType":"JSONPatch","patch":` + string(text) + `}`)
	}
	rows := []struct {
		name, reason string
		request      *admissionv1.AdmissionRequest
		status       int
		answer       string
		want         string
	}{
		{"allowed", "there is nothing to say", request("Pod", web, ""), 200, answer(`{"uid":"1","allowed":true}`), `
12:00:00 allowed  a.example.com  CREATE pods shop/web  by jane  1.5 ms
`},
		{"mutated", "the diff shows the parents of new lines, and marks omitted lines", request("Pod", web, ""), 200,
			patch(`[{"op":"add","path":"/spec/containers/1/args","value":["-v"]},{"op":"replace","path":"/spec/nodeName","value":"b"}]`), `
12:00:00 mutated  a.example.com  CREATE pods shop/web  by jane  1.5 ms
           spec:
             containers:
             …
         -   - image: b:v1
         +   - args:
         +     - -v
         +     image: b:v1
               …
         -   nodeName: a
         +   nodeName: b
`},
		{"no operation", "a patch that does nothing mutates nothing", request("Pod", web, ""), 200, patch(`[]`), `
12:00:00 allowed  a.example.com  CREATE pods shop/web  by jane  1.5 ms
`},
		{"does not apply", "the API server would refuse it", request("Pod", web, ""), 200, patch(`[{"op":"remove","path":"/spec/none"}]`), `
12:00:00 failed   a.example.com  CREATE pods shop/web  by jane  1.5 ms
         the patch cannot be applied: error in remove for path: '/spec/none': Unable to remove nonexistent key: none: missing value
`},
		{"denied", "the code is that of the webhook; what a terminal acts upon is taken out", request("Pod", web, ""), 200,
			answer(`{"uid":"1","allowed":false,"status":{"code":403,"message":"no \u001b[31mway\nat all"},"warnings":["mind\u0007 the gap"]}`), `
12:00:00 denied   a.example.com  CREATE pods shop/web  by jane  1.5 ms
         403: no �[31mway
         at all
         warning: mind� the gap
`},
		{"denied without a word", "the API server makes it 400", request("Pod", web, ""), 200, answer(`{"uid":"1","allowed":false}`), `
12:00:00 denied   a.example.com  CREATE pods shop/web  by jane  1.5 ms
         400: (no message)
`},
		{"failed", "a Status has a sentence", request("Pod", web, ""), 500, `{"kind":"Status","message":"the hook panicked"}`, `
12:00:00 failed   a.example.com  CREATE pods shop/web  by jane  1.5 ms
         HTTP 500: the hook panicked
`},
		{"nonsense", "the API server treats it as a failure", request("Pod", web, ""), 200, `hello`, `
12:00:00 failed   a.example.com  CREATE pods shop/web  by jane  1.5 ms
         the response is not an AdmissionReview with a response
`},
		{"uid", "so it does with the answer to another request", request("Pod", web, ""), 200, answer(`{"uid":"2","allowed":true}`), `
12:00:00 failed   a.example.com  CREATE pods shop/web  by jane  1.5 ms
         the response has the uid "2", not that of the request
`},
		{"secret", "others may see the screen", request("Secret", `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"web"},"data":{"a":"c2VjcmV0","b":"c2VjcmV0"}}`, ""), 200,
			patch(`[{"op":"replace","path":"/data/a","value":"bmV3"},{"op":"add","path":"/data/c","value":"bmV3"}]`), `
12:00:00 mutated  a.example.com  CREATE secrets shop/web  by jane  1.5 ms
           data:
         -   a: (hidden)
         +   a: (hidden, changed)
             …
         +   c: (hidden)
`},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			a := &Admission{Time: time.Date(2026, 1, 1, 12, 0, 0, 0, time.Local), Webhook: "a.example.com", Type: "mutating", Milliseconds: 1.5}
			a.describe(row.request)
			a.User = "jane"
			a.decide(row.request, row.status, []byte(row.answer))
			if diff := cmp.Diff(strings.TrimPrefix(row.want, "\n"), a.text(screen.Painter{}, 80)); diff != "" {
				t.Errorf("%s: (-want +got)\n%s", row.reason, diff)
			}
			if row.name == "secret" && a.Patch != nil {
				t.Errorf("the patch has a value of the Secret: %s", a.Patch)
			}
		})
	}
}

func TestAdmissionTextIsWrapped(t *testing.T) {
	a := &Admission{
		Time: time.Date(2026, 1, 1, 12, 0, 0, 0, time.Local), Webhook: "a.example.com", Operation: "UPDATE", Group: "apps", Resource: "deployments/status", Namespace: "shop", Name: "web",
		User: "system:serviceaccount:shop:deployer", Outcome: Allowed, Milliseconds: 20, WaitedMilliseconds: 1234, Round: 2, DryRun: true,
	}
	want := `12:00:00 allowed  a.example.com  UPDATE deployments.apps/status shop/web
                  by system:serviceaccount:shop:deployer  20.0 ms
                  waited 1.2 s for the build  reinvoked: round 2  dry run
`
	if diff := cmp.Diff(want, a.text(screen.Painter{}, 80)); diff != "" {
		t.Error(diff)
	}
}

func TestRounds(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	r := newRounds(func() time.Time { return now })
	const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"
	stored := func(version string) string { return `{"metadata":{"resourceVersion":"` + version + `"}}` }
	rows := []struct {
		reason, trace, webhook, old string
		want                        int
	}{
		{"the first", trace, "a", "", 1},
		{"another webhook", trace, "b", "", 1},
		{"the same one again", trace, "a", "", 2},
		{"another request", strings.Replace(trace, "0af", "1af", 1), "a", "", 1},
		{"who does not trace does not tell", "", "a", "", 0},
		{"an update", trace, "c", stored("1"), 1},
		{"it met another one and starts over", trace, "c", stored("2"), 1},
		{"and is reinvoked", trace, "c", stored("2"), 2},
	}
	for _, row := range rows {
		if got := r.of(row.trace, row.webhook, request("Pod", web, row.old)); got != row.want {
			t.Errorf("got round %d, want %d: %s", got, row.want, row.reason)
		}
	}
	now = now.Add(2 * longestRequest)
	r.of(trace, "a", request("Pod", web, ""))
	if len(r.seen) != 1 {
		t.Errorf("%d requests are kept, want 1: requests do not take that long", len(r.seen))
	}
}

func TestMount(t *testing.T) {
	fail, long := admissionregistrationv1.Fail, int32(30)
	path := "/validate"
	c := configuration{validating: &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "hooks", UID: "1", ResourceVersion: "3", Annotations: map[string]string{lastApplied: "{}", "a": "b"}},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "a.example.com", FailurePolicy: &fail, TimeoutSeconds: &long,
			ClientConfig: admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{Namespace: "shop", Name: "hooks", Path: &path}},
		}},
	}}
	p, err := newProxy("127.0.0.1:0", "127.0.0.1", "secret", func(*Admission) {})
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	f := adaptation{proxy: p, prefix: "dev-", owner: "me", ignore: true, careful: true}
	mounted, routes := f.mount([]configuration{c}, &upstream{})
	m := mounted[0].validating
	w := m.Webhooks[0]
	if m.Name != "dev-hooks" || m.UID != "" || m.ResourceVersion != "" || m.Labels[devLabel] != "me" || len(m.Annotations) != 1 {
		t.Errorf("%+v", m.ObjectMeta)
	}
	if *w.FailurePolicy != admissionregistrationv1.Ignore || *w.TimeoutSeconds != maxTimeout || w.NamespaceSelector.MatchExpressions[0].Values[0] != "kube-system" {
		t.Errorf("%+v", w)
	}
	if r := routes["validate/dev-hooks/a.example.com"]; w.ClientConfig.Service != nil || *w.ClientConfig.URL != p.url.String()+"/secret/validate/dev-hooks/a.example.com" || r.path != "/validate" {
		t.Errorf("%+v, %+v", w.ClientConfig, r)
	}
	if *c.validating.Webhooks[0].FailurePolicy != fail || c.validating.Name != "hooks" {
		t.Error("the input was changed")
	}
}

func TestTextNamesTheHooksThatAnswered(t *testing.T) {
	a := &Admission{Webhook: "a.example.com", Operation: "CREATE", Resource: "pods", Name: "web", Outcome: Allowed, WaitedMilliseconds: 3000, BeforeChange: true}
	if got := a.text(screen.Painter{}, 200); !strings.Contains(got, "answered by the previous hooks after waiting 3.0 s for the build") {
		t.Error(got)
	}
}

// TestCallsWait checks that a call during a build waits for the new hooks, but not longer than its timeout.
func TestCallsWait(t *testing.T) {
	rows := []struct {
		name, timeout string
		resume        bool
		wait          bool // the call must wait for a quarter of its timeout
	}{
		{"resumed", "10s", true, false},
		{"not resumed", "1s", false, true},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			p := &proxy{}
			p.pause()
			p.pause() // a second pause needs no second resume
			if row.resume {
				go p.resume()
			}
			req := httptest.NewRequest(http.MethodPost, "/?timeout="+row.timeout, nil)
			if waited, done := p.wait(req); row.wait && waited < 250*time.Millisecond || done != row.resume {
				t.Errorf("waited %s, and the build is done: %t", waited, done)
			}
		})
	}
}

func TestAdvertisedAddress(t *testing.T) {
	rows := []struct{ reason, advertise, server, host, port, problem string }{
		{"a host and a port", "192.0.2.1:9443", "https://x", "192.0.2.1", "9443", ""},
		{"any port", "laptop.example.com", "https://x", "laptop.example.com", "0", ""},
		{"IPv6", "[2001:db8::1]", "https://x", "2001:db8::1", "0", ""},
		{"a URL is not an address", "https://laptop.example.com", "https://x", "", "", "is not HOST or HOST:PORT"},
		{"the local address of the connection to the cluster", "", "https://127.0.0.1:6443", "127.0.0.1", "0", ""},
		{"a server URL without a port", "", "127.0.0.1", "127.0.0.1", "0", ""},
	}
	for _, row := range rows {
		host, port, err := advertisedAddress(row.advertise, row.server)
		if row.problem != "" {
			if err == nil || !strings.Contains(err.Error(), row.problem) {
				t.Errorf("%s: got %v", row.reason, err)
			}
			continue
		}
		if err != nil || host != row.host || port != row.port {
			t.Errorf("%s: got %s, %s, %v, want %s, %s", row.reason, host, port, err, row.host, row.port)
		}
	}
}

func TestOnlyOneDevCleansUpAState(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	dir, err := stateDir()
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "nonsense.json"), "{")
	write(t, filepath.Join(dir, "dead.json"), `{"id":"dead","server":"https://x"}`)
	mine, err := writeState(state{ID: "mine"})
	if err != nil {
		t.Fatal(err)
	}
	left, err := abandoned()
	if err != nil || len(left) != 1 || left[0].ID != "dead" {
		t.Fatalf("%v, %v", left, err)
	}
	if again, err := abandoned(); err != nil || len(again) > 0 {
		t.Errorf("two devs clean up the same state: %v, %v", again, err)
	}
	if err := errors.Join(left[0].remove(), mine.remove(), mine.remove()); err != nil {
		t.Error(err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("%v, %v", entries, err)
	}
}

func TestOptions(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := "http://" + closed.Addr().String()
	_ = closed.Close() // frees the port, so that no process listens there
	dir := t.TempDir()
	write(t, filepath.Join(dir, "webhooks.yaml"), twoWebhooks)
	write(t, filepath.Join(dir, "pod.yaml"), "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n")
	file := filepath.Join(dir, "webhooks.yaml")
	rows := []struct {
		reason string
		o      Options
		want   string
	}{
		{"they say what the URL is called for", Options{URL: address}, "--url needs --webhook-configuration"},
		{"one or the other", Options{URL: address, Package: "./hooks"}, "PACKAGE and --url exclude each other"},
		{"files without a URL", Options{Files: []string{file}}, "need --url"},
		{"flags are for an API server that dev starts", Options{Cluster: true, Flags: []string{"v=2"}}, "cannot be used with --cluster"},
		{"other flags are for an existing cluster", Options{Fail: true}, "need --cluster"},
		{"a URL needs a host", Options{URL: "localhost", Files: []string{file}}, "not a URL like"},
		{"no process listens", Options{URL: address, Files: []string{file}}, "cannot call " + address},
		{"a file without a webhook", Options{URL: address, Files: []string{filepath.Join(dir, "pod.yaml")}}, "no webhook configuration in"},
		{"a file that is not there", Options{URL: address, Files: []string{"none.yaml"}}, "none.yaml: no such file"},
		{"an object that is not there", Options{Apply: []string{"none.yaml"}}, "none.yaml: no such file"},
		{"a CA that is none", Options{URL: address, Files: []string{file}, CAFile: file}, "no certificate in PEM"},
		{"no kubeconfig", Options{URL: web404(t), Files: []string{file}, Cluster: true, Yes: true}, "cannot connect to a cluster"},
	}
	t.Setenv("KUBECONFIG", filepath.Join(dir, "none"))
	t.Setenv("HOME", dir)
	for _, row := range rows {
		t.Run(row.reason, func(t *testing.T) {
			err := Run(t.Context(), &screen.Screen{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard, Getenv: os.Getenv}, row.o)
			if err == nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("got %v, want %q", err, row.want)
			}
		})
	}
}

// TestPackageIsCheckedFirst checks that dev does not begin to build an API server for a package that cannot have hooks.
func TestPackageIsCheckedFirst(t *testing.T) {
	dir := module(t, "-- main.go --\npackage main\n\nfunc main() {}\n")
	t.Setenv("ADMITKIT_CACHE", t.TempDir()) // so there is no API server
	t.Setenv("KUBEBUILDER_ASSETS", "")
	for pkg, want := range map[string]string{".": ". is a program (package main)", "./hooks": "the folder ./hooks does not exist"} {
		var messages bytes.Buffer
		err := Run(t.Context(), &screen.Screen{In: strings.NewReader(""), Out: io.Discard, Err: &messages, Getenv: os.Getenv}, Options{Dir: dir, Package: pkg})
		if err == nil || !strings.Contains(err.Error(), want) || messages.Len() > 0 {
			t.Errorf("%s: got %v and %q, want %q and no message", pkg, err, &messages, want)
		}
	}
}

// web404 starts a server that answers every request with 404.
func web404(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(s.Close)
	return s.URL
}

// FuzzAnswer checks that every response of a webhook is reported, without control characters.
func FuzzAnswer(f *testing.F) {
	f.Add(200, []byte(`{"response":{"uid":"1","allowed":true,"patch":"W10="}}`))
	f.Add(200, []byte(`{"response":{"uid":"1","allowed":false,"status":{"message":"\u001b[2J","code":-1},"warnings":["\u0000"]}}`))
	f.Add(500, []byte(`{"kind":"Status","message":"no"}`))
	f.Fuzz(func(t *testing.T, status int, answer []byte) {
		a := &Admission{Webhook: "a.example.com"}
		r := request("Pod", web, "")
		a.describe(r)
		a.decide(r, status, answer)
		if a.Outcome == "" {
			t.Error("there is no outcome")
		}
		for _, c := range a.text(screen.Painter{}, 80) {
			if unicode.IsControl(c) && c != '\n' && c != '\t' {
				t.Errorf("%U is printed", c)
			}
		}
		if _, err := json.Marshal(a); err != nil {
			t.Error(err)
		}
	})
}
