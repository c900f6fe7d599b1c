// SPDX-License-Identifier: Apache-2.0

package visible

import "testing"

func TestText(t *testing.T) {
	rows := []struct{ reason, text, want string }{
		{"what can be seen stays", "é 中 🙂\n\t", "é 中 🙂\n\t"},
		{"a direction that is turned round hides what is there", "a\u202eb", `a\u202eb`},
		{"what has no width makes two names look alike", "a\u200bb", `a\u200bb`},
		{"terminals obey it", "\x1b[31m", `\u001b[31m`},
		{"terminals obey it in one character, too", "\u009b31m", `\u009b31m`},
		{"no such character", "a\xffb", "a\uFFFDb"},
	}
	for _, row := range rows {
		if got := Text(row.text); got != row.want {
			t.Errorf("%q becomes %q, want %q: %s", row.text, got, row.want, row.reason)
		}
	}
}

func TestLine(t *testing.T) {
	if got, want := Line("a\n\tb\u200b"), `a\n\tb\u200b`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
