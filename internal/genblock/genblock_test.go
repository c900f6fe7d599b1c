// SPDX-License-Identifier: Apache-2.0

package genblock

import (
	"strings"
	"testing"
)

// TestReplaceKeepsTheTextAround checks that Replace does not change the text around the block.
func TestReplaceKeepsTheTextAround(t *testing.T) {
	block := string(New([]byte("a: 1\n")))
	now := string(New([]byte("a: 2\n")))
	rows := map[string]string{ // file and its replacement
		"":                                    now,
		"\n":                                  now,
		block:                                 now,
		"# mine\n" + block + "---\nb: mine\n": "# mine\n" + now + "---\nb: mine\n",
	}
	for file, want := range rows {
		got, err := Replace([]byte(file), []byte("a: 2\n"))
		if err != nil || string(got) != want {
			t.Errorf("%q: got %q, %v", file, got, err)
		}
		if text, ok := Find(got); !ok || string(text) != "a: 2\n" {
			t.Errorf("%q: the block is %q", got, text)
		}
	}
}

// TestUnclearBlocks checks that Replace and Find fail for files that do not have exactly one complete block.
func TestUnclearBlocks(t *testing.T) {
	for _, file := range []string{"a: 1\n", begin, end, end + begin, begin + "a: 1\n", "x" + begin + end, begin + end + begin + end} {
		if got, err := Replace([]byte(file), nil); err == nil || !strings.Contains(err.Error(), begin) {
			t.Errorf("%q: got %q, %v", file, got, err)
		}
		if _, ok := Find([]byte(file)); ok {
			t.Errorf("%q has a block", file)
		}
	}
}

func TestChanges(t *testing.T) {
	if got := Changes([]byte("a\nb\nb\n"), []byte("b\nc\n")); got != "- a\n- b\n+ c\n" {
		t.Errorf("got %q", got)
	}
	if got := Changes([]byte("a\nb\n"), []byte("a\nb\n")); got != "" {
		t.Errorf("got %q", got)
	}
}

func FuzzReplace(f *testing.F) {
	f.Add(begin+"a\n"+end, "b\n")
	f.Add("x\n"+begin+end+"y", "")
	f.Fuzz(func(t *testing.T, file, text string) {
		if strings.Contains(text, begin) || strings.Contains(text, end) || text != "" && !strings.HasSuffix(text, "\n") {
			return // no generator writes such a text
		}
		got, err := Replace([]byte(file), []byte(text))
		if err != nil {
			return
		}
		if found, ok := Find(got); !ok || string(found) != text {
			t.Fatalf("the block of %q is %q, want %q", got, found, text)
		}
		old, _ := Find([]byte(file))
		if back, err := Replace(got, old); strings.TrimSpace(file) != "" && (err != nil || string(back) != file) {
			t.Fatalf("replacing back gives %q, %v", back, err)
		}
	})
}
