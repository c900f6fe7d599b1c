// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/admitkit/admitkit/test/corpus"
)

// fuzzVariable is an environment variable that makes FuzzHook test a broken webhook.
const fuzzVariable = "ADMITKIT_TEST_BROKEN"

// FuzzHook is a fuzz target as users write it.
func FuzzHook(f *testing.F) {
	var broken atomic.Bool
	broken.Store(os.Getenv(fuzzVariable) != "")
	Fuzz(f, moody(&broken), Options{})
}

// TestFuzzTargetsFail runs FuzzHook on a broken webhook, with and without -fuzz. Both runs must fail with a report.
func TestFuzzTargetsFail(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir()) // go test stores failing inputs in testdata
	run := func(args ...string) (string, error) {
		command := exec.CommandContext(t.Context(), self, args...)
		command.Env = append(os.Environ(), fuzzVariable+"=yes")
		out, err := command.CombinedOutput()
		return string(out), err
	}
	out, err := run("-test.run", "^FuzzHook$/^seed#0$")
	if err == nil || !strings.Contains(out, "FAILS  second call (L1)") || !strings.Contains(out, "spec.containers[name=agent#2] is added") {
		t.Fatalf("%v: no report in\n%s", err, out)
	}
	out, err = run("-test.run", "^$", "-test.fuzz", "^FuzzHook$", "-test.fuzzcachedir", t.TempDir(), "-test.fuzztime", "100x", "-test.fuzzminimizetime", "1x", "-test.parallel", "1")
	if err == nil || !strings.Contains(out, "FAILS") {
		t.Errorf("%v: the search finds nothing:\n%s", err, out)
	}
}

func fuzzerOf(t *testing.T, c corpus.Case) *fuzzer {
	t.Helper()
	z, err := newFuzzer(Handler(c.Webhook, c.New), Options{Samples: c.Samples})
	if err != nil {
		t.Fatal(err)
	}
	return z
}

func (z *fuzzer) report(t *testing.T, input []byte) *Report {
	t.Helper()
	report, err := z.try(t.Context(), input)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func randomInput(random *rand.Rand) []byte {
	input := make([]byte, 3+random.IntN(60))
	for i := range input {
		input[i] = byte(random.Uint64())
	}
	return input
}

// TestFuzzFindsPatternsAndFlagsNoLookalike runs the fuzzer on webhooks of package corpus. The seeds alone must reveal
// each broken webhook. Correct webhooks must pass all laws for random inputs.
func TestFuzzFindsPatternsAndFlagsNoLookalike(t *testing.T) {
	for _, name := range []string{"P01 blind append of a sidecar", "P10 early return when its volume exists", "P13 replaces the whole map", "P16 typed round trip drops unknown fields", "P22 process counter"} {
		c := pattern(t, name)
		z := fuzzerOf(t, c)
		if !slices.ContainsFunc(z.seeds(), func(seed []byte) bool { return finds(z.report(t, seed), c) }) {
			t.Errorf("no seed finds %s", name)
		}
	}
	random := rand.New(rand.NewPCG(1, 1))
	for i, c := range corpus.Lookalikes() {
		if i%12 != 0 {
			continue
		}
		z := fuzzerOf(t, c)
		for range 4 {
			if input := randomInput(random); !z.report(t, input).OK() {
				t.Errorf("%s is flagged for %x:\n%s", c.Name, input, z.report(t, input).findings())
			}
		}
	}
}

// TestFuzzSearchesForATrigger requires that the seeds reveal a broken webhook that acts on annotated Pods only, without a
// sample.
func TestFuzzSearchesForATrigger(t *testing.T) {
	c := pattern(t, "T21 appends a container to annotated Pods")
	z := fuzzerOf(t, c)
	finding := func(seed []byte) bool { return finds(z.report(t, seed), c) }
	if slices.ContainsFunc(z.seeds(), finding) {
		t.Error("the bug is found without the trigger, so this test shows nothing")
	}
	if err := z.awake(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(z.seeds(), finding) {
		t.Error("no seed finds the bug")
	}
}

// TestFuzzDependsOnItsInputOnly tries each input a second time, with a new fuzzer. The findings must be the same,
// because Go repeats and minimizes inputs.
func TestFuzzDependsOnItsInputOnly(t *testing.T) {
	z := fuzzerOf(t, pattern(t, "P10 early return when its volume exists"))
	random := rand.New(rand.NewPCG(2, 2))
	for range 5 {
		input := randomInput(random)
		first := z.report(t, input)
		z.report(t, randomInput(random))
		again := fuzzerOf(t, pattern(t, "P10 early return when its volume exists")).report(t, input)
		if first.findings() != again.findings() {
			t.Errorf("%x finds\n%s\nand then\n%s", input, first.findings(), again.findings())
		}
	}
}

func TestFuzzFailsIfNothingIsChanged(t *testing.T) {
	asleep := editing("", "v1", "configmaps", onCreate, only("switched-on"))
	for _, tt := range []struct {
		opts Options
		says string
	}{
		{Options{}, "the webhook changed none of "},
		{Options{AllowInconclusive: []Allowance{{Reason: "a reason"}}}, ""},
		{Options{Samples: []runtime.Object{configMap("switched-on")}}, ""},
	} {
		z, err := newFuzzer(asleep, tt.opts)
		if err == nil {
			err = z.awake(t.Context())
		}
		if (err == nil) != (tt.says == "") || err != nil && !strings.Contains(err.Error(), tt.says) {
			t.Errorf("error %v, want %q", err, tt.says)
		}
	}
}

func TestFuzzReportsWhatItCannotTest(t *testing.T) {
	registration, _ := marking()
	z, err := newFuzzer(URL(registration, nil, "http://"+refusing(t)), Options{})
	if err == nil {
		err = z.awake(t.Context())
	}
	if err == nil || codeOf(err) != ReasonConnectionRefused {
		t.Errorf("error %v", err)
	}
	if _, err := newFuzzer(URL(registration, nil, "http://127.0.0.1:1"), Options{TimeGaps: DefaultTimeGaps()}); err == nil {
		t.Error("time gaps in a fuzz target are no error")
	}
	if _, err := newFuzzer(URL(registration, nil, "http://127.0.0.1:1"), Options{APIServer: &rest.Config{}}); err == nil || codeOf(err) != ReasonNotForFuzz {
		t.Errorf("an API server in a fuzz target: error %v", err)
	}
}

// codeOf returns the reason code of an [*Error], or an empty code for any other error.
func codeOf(err error) ReasonCode {
	if failed := (*Error)(nil); errors.As(err, &failed) {
		return failed.Reason.Code
	}
	return ""
}
