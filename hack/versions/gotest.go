// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A result counts the tests of a suite on one release. It counts Ginkgo specs, and not the test that runs the specs.
type result struct {
	passed          int
	failed, skipped []string // names
}

func (r *result) String() string {
	text := fmt.Sprintf("%d passed", r.passed)
	if len(r.failed) > 0 {
		text += ", failed: " + strings.Join(r.failed, ", ")
	}
	if len(r.skipped) > 0 {
		text += ", skipped: " + strings.Join(r.skipped, ", ")
	}
	return text
}

// test runs the suite. The output of a failed test goes to standard error.
func (s *suite) test(ctx context.Context, environment []string) (*result, error) {
	args := []string{"test", "-json", "-count=1", "-timeout=60m"}
	if s.race {
		args = append(args, "-race")
	}
	if s.run != "" {
		args = append(args, "-run", s.run)
	}
	command := exec.CommandContext(ctx, "go", append(args, s.dir)...)
	command.Env = environment
	var messages bytes.Buffer
	command.Stderr = &messages
	out, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, err
	}
	result, err := read(out, os.Stderr)
	if err != nil {
		return nil, errors.Join(err, command.Wait())
	}
	if err := command.Wait(); err != nil && len(result.failed) == 0 {
		return nil, fmt.Errorf("%w\n%s", err, messages.String())
	}
	if result.passed == 0 && len(result.failed) == 0 {
		return nil, errors.New("no test ran")
	}
	return result, nil
}

// An event is a line of the output of go test -json (go doc test2json).
type event struct{ Action, Test, Output string }

// specs matches the counts at the end of the output of Ginkgo.
var specs = regexp.MustCompile(`(\d+) Passed\S* \| \S*(\d+) Failed\S* \| \S*(\d+) Pending\S* \| \S*(\d+) Skipped`)

// read counts the tests in the output of go test -json. It copies the output of failed tests to failures.
func read(out io.Reader, failures io.Writer) (*result, error) {
	var r result
	printed := map[string]*strings.Builder{}
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return nil, fmt.Errorf("%w: %s", err, lines.Text())
		}
		top, _, isSubtest := strings.Cut(e.Test, "/")
		if printed[top] == nil {
			printed[top] = &strings.Builder{}
		}
		switch {
		case e.Action == "output":
			printed[top].WriteString(e.Output)
			if counts := specs.FindStringSubmatch(e.Output); counts != nil {
				r.addSpecs(counts[1:])
			}
		case e.Action == "fail":
			if !isSubtest {
				_, _ = io.WriteString(failures, printed[top].String()) // the result reports the failure as well
			}
			if e.Test != "" {
				r.failed = append(r.failed, e.Test)
			}
		case e.Action == "skip" && e.Test != "":
			r.skipped = append(r.skipped, e.Test)
		case e.Action == "pass" && e.Test != "" && !isSubtest:
			r.passed++
		}
	}
	return &r, lines.Err()
}

// addSpecs adds the numbers of specs that passed, failed, are pending and were skipped.
func (r *result) addSpecs(counts []string) {
	var n [4]int
	for i, text := range counts {
		n[i], _ = strconv.Atoi(text) // the expression matches digits only
	}
	r.passed += n[0] - 1 // the test that runs the specs is counted, too
	for i, name := range []string{"failed spec", "pending spec", "skipped spec"} {
		names := slices.Repeat([]string{name}, n[i+1])
		if i == 0 {
			r.failed = append(r.failed, names...)
		} else {
			r.skipped = append(r.skipped, names...)
		}
	}
}
