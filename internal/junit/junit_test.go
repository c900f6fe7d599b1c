// SPDX-License-Identifier: Apache-2.0

package junit

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
)

func TestWrite(t *testing.T) {
	var text strings.Builder
	err := Write(&text, Suite{Name: "s", Tests: 9, Out: &Text{"end"}, Cases: []Case{
		{Class: "a", Name: "holds"},
		{Class: "a", Name: "both", File: "x.yaml", Line: 3, Failures: []Failure{{"r", "one", "<1>"}, {"r", "two", "]]>"}}, Skipped: &Skipped{"-"}},
		{Class: "a", Name: "skipped", Skipped: &Skipped{"why"}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`tests="3" failures="1" skipped="1"`, `file="x.yaml" line="3"`, "<![CDATA[<1>]]>", "end"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, text.String())
		}
	}
}

// FuzzWrite checks that an XML parser reads every report.
func FuzzWrite(f *testing.F) {
	f.Add("plain")
	f.Add("\x1b[31m ]]> \ufffe \xff & < \"")
	f.Fuzz(func(t *testing.T, s string) {
		var text strings.Builder
		suite := Suite{Name: s, Out: &Text{s}, Cases: []Case{
			{Class: s, Name: s, File: s, Failures: []Failure{{s, s, s}}, Out: &Text{s}}, {Skipped: &Skipped{s}},
		}}
		if err := Write(&text, suite); err != nil {
			t.Fatal(err)
		}
		for d := xml.NewDecoder(strings.NewReader(text.String())); ; {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				return
			} else if err != nil {
				t.Fatalf("%q: %v\n%s", s, err, text.String())
			}
		}
	})
}
