// SPDX-License-Identifier: Apache-2.0

package textutil

import (
	"os/exec"
	"testing"
)

func TestVisible(t *testing.T) {
	rows := []struct{ reason, text, want string }{
		{"visible characters stay", "é 中 🙂\n\t", "é 中 🙂\n\t"},
		{"right-to-left override", "a\u202eb", `a\u202eb`},
		{"zero-width space", "a\u200bb", `a\u200bb`},
		{"terminal escape", "\x1b[31m", `\u001b[31m`},
		{"terminal escape in one character", "\u009b31m", `\u009b31m`},
		{"invalid UTF-8", "a\xffb", "a\uFFFDb"},
	}
	for _, row := range rows {
		if got := Visible(row.text); got != row.want {
			t.Errorf("Visible(%q) is %q, want %q: %s", row.text, got, row.want, row.reason)
		}
	}
}

func TestVisibleLine(t *testing.T) {
	if got, want := VisibleLine("a\n\tb\u200b"), `a\n\tb\u200b`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestCount(t *testing.T) {
	rows := []struct{ got, want string }{
		{Count(0, "request"), "0 requests"},
		{Count(1, "request"), "1 request"},
		{Count(2, "request"), "2 requests"},
		{CountAs(1, "entry", "entries"), "1 entry"},
		{CountAs(2, "entry", "entries"), "2 entries"},
	}
	for _, row := range rows {
		if row.got != row.want {
			t.Errorf("got %q, want %q", row.got, row.want)
		}
	}
}

func TestJoin(t *testing.T) {
	rows := []struct {
		items []string
		want  string
	}{
		{nil, ""},
		{[]string{"a"}, "a"},
		{[]string{"a", "b"}, "a and b"},
		{[]string{"a", "b", "c"}, "a, b and c"},
	}
	for _, row := range rows {
		if got := Join(row.items, "and"); got != row.want {
			t.Errorf("Join(%q) is %q, want %q", row.items, got, row.want)
		}
	}
}

func TestClip(t *testing.T) {
	rows := []struct {
		text  string
		limit int
		want  string
	}{
		{"abc", 3, "abc"},
		{"abcd", 3, "abc…"},
		{"aü", 2, "a…"}, // a cut inside a character
	}
	for _, row := range rows {
		if got := Clip(row.text, row.limit); got != row.want {
			t.Errorf("Clip(%q, %d) is %q, want %q", row.text, row.limit, got, row.want)
		}
	}
}

func TestFirstLine(t *testing.T) {
	for text, want := range map[string]string{"": "", "a": "a", "a\nb": "a", "\nb": ""} {
		if got := FirstLine(text); got != want {
			t.Errorf("FirstLine(%q) is %q, want %q", text, got, want)
		}
	}
}

func TestShellQuote(t *testing.T) {
	for word, want := range map[string]string{
		"":                   "''",
		"a/b-c_d.e:f=g,h@i+": "a/b-c_d.e:f=g,h@i+",
		"a b":                "'a b'",
		"it's":               `'it'\''s'`,
		"$HOME":              "'$HOME'",
		"~":                  "'~'",
		"[*]":                "'[*]'",
		"a\nb":               "'a\nb'",
	} {
		got := ShellQuote(word)
		if got != want {
			t.Errorf("ShellQuote(%q) is %s, want %s", word, got, want)
		}
		out, err := exec.CommandContext(t.Context(), "sh", "-c", "printf %s "+got).Output()
		if err != nil || string(out) != word {
			t.Errorf("the shell reads %s as %q, want %q (%v)", got, out, word, err)
		}
	}
}

func TestWrap(t *testing.T) {
	rows := []struct{ reason, lead, text, want string }{
		{"one line", "a: ", "one two", "a: one two\n"},
		{"indented as far as the lead", "a: ", "one two three", "a: one two\n   three\n"},
		{"colours take no room", "\x1b[1ma: \x1b[0m", "one two three", "\x1b[1ma: \x1b[0mone two\n   three\n"},
		{"a long word has its own line", "", "a reinvocation b", "a\nreinvocation\nb\n"},
		{"no text", "a:", "", "a:\n"},
		{"newlines are spaces", "", "a\nb", "a b\n"},
		{"invisible characters are escaped", "", "\x1b", `\u001b` + "\n"},
	}
	for _, row := range rows {
		if got := Wrap(row.lead, row.text, 10); got != row.want {
			t.Errorf("%s: got %q, want %q", row.reason, got, row.want)
		}
	}
}
