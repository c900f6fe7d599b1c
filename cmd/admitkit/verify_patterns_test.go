// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/admitkit/admitkit/internal/cli/screen"
	"github.com/admitkit/admitkit/internal/devcert"
	"github.com/admitkit/admitkit/pkg/idempotence"
	"github.com/admitkit/admitkit/test/corpus"
)

// These are the numbers of objects that admitkit verify generates for a broken and for a correct webhook of test/corpus.
// They are large enough to find the faults, and small enough for a quick test. The tests in this file run every third
// webhook, or all with ADMITKIT_CASES=all. A test of package idempotence runs all webhooks in process. With -full,
// verify generates its default number of objects, and checks all laws for webhooks in Python too:
//
//	go test ./cmd/admitkit -run TestVerifyPatterns -full -timeout 1h
const (
	objectsOfPattern   = 3
	objectsOfLookalike = 2
)

var full = flag.Bool("full", false, "verify the patterns as users do: with 40 objects and all laws")

// A runningWebhook is a started webhook of one pattern in test/corpus, with the flags and files that admitkit verify
// needs to test it.
type runningWebhook struct {
	laws   []string // laws that the webhook fails
	advice bool     // whether the finding may be advice
	urls   []string
	files  map[string]any // content of files, by flag
	flags  []string
}

// verified runs admitkit verify for the webhook. It returns the report and the exit code.
func (w *runningWebhook) verified(t *testing.T, objects int) (*idempotence.Report, int) {
	t.Helper()
	dir := t.TempDir()
	args := []string{"verify", "--in-process", "-o", "json", "--objects", fmt.Sprint(objects)}
	for _, u := range w.urls {
		args = append(args, "--url", u)
	}
	for flag, content := range w.files {
		file := filepath.Join(dir, strings.Trim(flag, "-")+".yaml")
		text, raw := content.([]byte)
		if !raw {
			var err error
			if text, err = yaml.Marshal(content); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, flag, file)
	}
	var out, complaints bytes.Buffer
	s := &screen.Screen{In: strings.NewReader(""), Out: &out, Err: &complaints, Colour: "never", Getenv: func(string) string { return "" }}
	begin := time.Now()
	code := run(t.Context(), s, append(args, w.flags...))
	took := time.Since(begin)
	report := &idempotence.Report{}
	if err := json.Unmarshal(out.Bytes(), report); err != nil {
		t.Fatalf("exit code %d, %v:\n%s%s", code, err, out.Bytes(), complaints.Bytes())
	}
	t.Logf("%s, %d calls, exit code %d: %s", took.Round(time.Millisecond), report.Calls, code, report.Incomplete)
	return report, code
}

// judge runs admitkit verify. For a broken webhook, the command must report a law that the webhook is known to fail.
// For a correct webhook, it must report no failed law.
func (w *runningWebhook) judge(t *testing.T) {
	t.Parallel()
	broken := len(w.laws) > 0
	objects := objectsOfLookalike
	if broken {
		objects = objectsOfPattern
	}
	if *full {
		objects = 40
	}
	report, code := w.verified(t, objects)
	found := slices.ContainsFunc(report.Findings, func(v *idempotence.Violation) bool {
		return (w.advice || v.Verdict != idempotence.Advice) && w.breaks(v.Law)
	})
	switch {
	case !broken && code == exitFound:
		t.Errorf("a correct webhook is flagged:\n%s", text(report))
	case broken && !found && !w.advice:
		t.Errorf("exit code %d, and no violation of %v:\n%s", code, w.laws, text(report))
	case broken && code != exitFound && !w.advice:
		t.Errorf("a violation, and exit code %d", code)
	}
}

// breaks reports whether the webhook is known to fail the law. If w.laws contains L4, this is true for both L4a and
// L4b.
func (w *runningWebhook) breaks(law idempotence.Law) bool {
	return slices.Contains(w.laws, string(law)) || slices.Contains(w.laws, strings.TrimRight(string(law), "ab"))
}

func text(report *idempotence.Report) string {
	var b strings.Builder
	_ = report.WriteText(&b, false)
	return b.String()
}

// configurationOf returns a configuration with one webhook.
func configurationOf(w admissionregistrationv1.MutatingWebhook) *admissionregistrationv1.MutatingWebhookConfiguration {
	return &admissionregistrationv1.MutatingWebhookConfiguration{
		TypeMeta:   metav1.TypeMeta{APIVersion: admissionregistrationv1.SchemeGroupVersion.String(), Kind: "MutatingWebhookConfiguration"},
		ObjectMeta: metav1.ObjectMeta{Name: w.Name}, Webhooks: []admissionregistrationv1.MutatingWebhook{w},
	}
}

// listOf returns a List of objects, as the content of a file.
func listOf[T any](objects []T) map[string]any {
	return map[string]any{"apiVersion": "v1", "kind": "List", "items": objects}
}

// step returns n if the tests run every nth webhook.
func step() int {
	if *full || os.Getenv("ADMITKIT_CASES") == "all" {
		return 1
	}
	return 3
}

// TestVerifyPatternsOfGo checks webhooks in Go. The command must find the faulty patterns of the corpus, and must not
// report correct webhooks that look similar.
func TestVerifyPatternsOfGo(t *testing.T) {
	var public []corpus.Case
	for _, c := range slices.Concat(corpus.Patterns(), corpus.Lookalikes()) {
		if c.Name[0] == 'P' || c.Name[0] == 'N' {
			public = append(public, c)
		}
	}
	for i := 0; i < len(public); i += step() {
		t.Run(public[i].Name, func(t *testing.T) { servedByGo(t, public[i]).judge(t) })
	}
}

func servedByGo(t *testing.T, c corpus.Case) *runningWebhook {
	t.Helper()
	w := &runningWebhook{laws: c.Laws, advice: c.Advice, files: map[string]any{"--webhook-configuration": configurationOf(c.Webhook)}}
	if len(c.Laws) > 0 && len(c.Rivals) > 0 {
		return chainedByGo(t, c)
	}
	handler := c.New()
	if c.Observe != nil { // write the observed state to a file, for --observe
		state := filepath.Join(t.TempDir(), "state")
		handler = writing(t, handler, state, c.Observe)
		w.flags = append(w.flags, "--observe", "cat "+state)
	}
	server := serving(t, handler)
	w.urls = []string{server.URL + "/mutate"}
	w.files["--ca-file"] = caOf(server)
	if len(c.Samples) > 0 {
		w.files["-f"] = listOf(c.Samples)
	}
	var exceptions []map[string]string
	for _, e := range c.Exceptions {
		exception := map[string]string{"path": fieldPath(e.Path), "reason": e.Reason}
		if e.Law != "" {
			exception["law"] = e.Law
		}
		exceptions = append(exceptions, exception)
	}
	if len(exceptions) > 0 {
		w.files["--exceptions"] = exceptions
	}
	return w
}

// chainedByGo serves a webhook of the corpus together with its rivals. Such a webhook fails only together with others.
func chainedByGo(t *testing.T, c corpus.Case) *runningWebhook {
	t.Helper()
	server := serving(t, c.New())
	w := &runningWebhook{laws: c.Laws, urls: []string{c.Webhook.Name + "=" + server.URL}, files: map[string]any{"--ca-file": caOf(server)}}
	chain := configurationOf(c.Webhook)
	for i, rival := range c.Rivals {
		other := c.Webhook
		other.Name = fmt.Sprintf("rival-%d.example.com", i)
		chain.Webhooks = append(chain.Webhooks, other)
		w.urls = append(w.urls, other.Name+"="+serving(t, rival()).URL) // all servers have the same certificate
	}
	w.files["--chain"] = chain
	return w
}

func serving(t *testing.T, handler http.Handler) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // some handlers panic
	server.StartTLS()
	t.Cleanup(server.Close)
	return server
}

func caOf(server *httptest.Server) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
}

// writing returns a handler that calls the given handler and then writes the result of observe to a file as JSON.
func writing(t *testing.T, handler http.Handler, file string, observe func() any) http.Handler {
	save := func() {
		text, err := json.Marshal(observe())
		if err == nil {
			err = os.WriteFile(file, text, 0o600)
		}
		if err != nil {
			t.Error(err)
		}
	}
	save()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer save()
		handler.ServeHTTP(w, r)
	})
}

// fieldPath converts a JSON pointer to the path format of the exceptions file.
func fieldPath(pointer string) string {
	var b strings.Builder
	for _, token := range strings.Split(pointer, "/")[1:] {
		b.WriteString("[" + strings.NewReplacer("~1", "/", "~0", "~").Replace(token) + "]")
	}
	return b.String()
}

// A pythonCase describes one webhook of the Python server, as the server reports it.
type pythonCase struct {
	Path, Pattern, Title, Resource, Effects, Observed string
	Laws, Operations, Versions                        []string
	Samples                                           []runtime.RawExtension
	Exceptions                                        []map[string]string
}

// TestVerifyPatternsOfPython checks webhooks in Python, as TestVerifyPatternsOfGo does in Go. Two replicas of one
// server serve them.
func TestVerifyPatternsOfPython(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Fatal("this test needs Python 3 on PATH, such as Debian's package python3: ", err)
	}
	state := t.TempDir()
	ca, cert, key := pythonCertificates(t)
	replicas := []string{startPython(t, "1", cert, key, state), startPython(t, "2", cert, key, state)}
	cases := casesOfPython(t, ca, replicas[0])
	patterns := map[string]int{}
	t.Run("patterns", func(t *testing.T) {
		for i, c := range cases {
			if patterns[c.Pattern] |= 1; len(c.Laws) > 0 {
				patterns[c.Pattern] |= 2
			}
			if i%step() > 0 {
				continue
			}
			w := &runningWebhook{laws: c.Laws, files: map[string]any{"--ca-file": ca, "--webhook-configuration": configurationOf(c.registration())}}
			for _, replica := range replicas {
				w.urls = append(w.urls, replica+c.Path)
			}
			if c.Samples != nil {
				w.files["-f"] = listOf(c.Samples)
			}
			if c.Exceptions != nil {
				w.files["--exceptions"] = c.Exceptions
			}
			for _, law := range idempotence.Laws { // the test in Go runs the other laws
				if w.breaks(law) && !*full {
					w.flags = append(w.flags, "--law", string(law))
				}
			}
			if c.Observed != "" {
				w.flags = append(w.flags, "--observe", "cat "+filepath.Join(state, c.Observed)+" 2>/dev/null || true")
			}
			t.Run(c.Path[1:], func(t *testing.T) { w.judge(t) })
		}
	})
	for i := range 26 {
		if name := fmt.Sprintf("P%02d", i+1); patterns[name] != 3 {
			t.Errorf("%s has no pattern, or no look-alike", name)
		}
	}
}

func (c *pythonCase) registration() admissionregistrationv1.MutatingWebhook {
	effects := admissionregistrationv1.SideEffectClass(cmp.Or(c.Effects, "None"))
	again := admissionregistrationv1.IfNeededReinvocationPolicy
	w := admissionregistrationv1.MutatingWebhook{
		Name: strings.ToLower(c.Path[1:]) + ".patterns.example.com", SideEffects: &effects, ReinvocationPolicy: &again,
		AdmissionReviewVersions: c.Versions,
		Rules: []admissionregistrationv1.RuleWithOperations{{Rule: admissionregistrationv1.Rule{
			APIGroups: []string{map[string]string{"pods": "", "deployments": "apps"}[c.Resource]}, APIVersions: []string{"v1"}, Resources: []string{c.Resource},
		}}},
	}
	for _, operation := range c.Operations {
		w.Rules[0].Operations = append(w.Rules[0].Operations, admissionregistrationv1.OperationType(operation))
	}
	if len(w.AdmissionReviewVersions) == 0 {
		w.AdmissionReviewVersions = []string{"v1", "v1beta1"}
	}
	return w
}

// pythonCertificates returns a CA, and files with a certificate and key for 127.0.0.1.
func pythonCertificates(t *testing.T) (ca []byte, cert, key string) {
	t.Helper()
	authority, err := devcert.NewCA()
	if err != nil {
		t.Fatal(err)
	}
	serving, err := authority.Serving("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(serving.Certificates[0].PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	for file, block := range map[string]*pem.Block{
		cert: {Type: "CERTIFICATE", Bytes: serving.Certificates[0].Certificate[0]}, key: {Type: "PRIVATE KEY", Bytes: raw},
	} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return authority.Bundle, cert, key
}

// startPython starts a replica, which ends with the test, and returns its URL. The iteration order of its sets depends
// on the seed.
func startPython(t *testing.T, seed, cert, key, state string) string {
	t.Helper()
	command := exec.CommandContext(context.WithoutCancel(t.Context()), "python3", filepath.Join("testdata", "patterns", "webhook.py"), cert, key, state)
	command.Env = append(os.Environ(), "PYTHONHASHSEED="+seed, "PYTHONDONTWRITEBYTECODE=1")
	command.Stderr = os.Stderr
	stdin, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = stdin.Close()
		_ = command.Wait()
	})
	port, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatalf("the server in Python does not start: %v", err)
	}
	return "https://127.0.0.1:" + strings.TrimSpace(port)
}

func casesOfPython(t *testing.T, ca []byte, server string) (cases []pythonCase) {
	t.Helper()
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig.RootCAs, transport.Proxy = pool, nil
	response, err := (&http.Client{Transport: transport}).Get(server + "/")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if err := json.NewDecoder(response.Body).Decode(&cases); err != nil {
		t.Fatal(err)
	}
	return cases
}
