// SPDX-License-Identifier: Apache-2.0

package lines

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func TestNext(t *testing.T) {
	const limit = 40
	long := strings.Repeat("x", limit+1)
	for _, in := range []struct {
		reason, text string
		want         []Line
	}{
		{"nothing", "", nil},
		{"two lines", "a\nb\n", []Line{{Text: []byte("a"), Ended: true}, {Text: []byte("b"), Ended: true}}},
		{"empty lines", "\n\r\n", []Line{{Text: []byte(""), Ended: true}, {Text: []byte(""), Ended: true}}},
		{"no newline at the end", "a\nb", []Line{{Text: []byte("a"), Ended: true}, {Text: []byte("b")}}},
		{"longer than the buffer", long[:30] + "\na", []Line{{Text: []byte(long[:30]), Ended: true}, {Text: []byte("a")}}},
		{"too long", long + "\na", []Line{{TooLong: true, Ended: true}, {Text: []byte("a")}}},
		{"too long at the end", long, []Line{{TooLong: true}}},
	} {
		r := Reader{In: bufio.NewReaderSize(iotest.OneByteReader(strings.NewReader(in.text)), 16), Limit: limit}
		var got []Line
		for {
			line, err := r.Next()
			if err != nil {
				if !errors.Is(err, io.EOF) {
					t.Errorf("%s: %v", in.reason, err)
				}
				break
			}
			line.Text = bytes.Clone(line.Text)
			got = append(got, line)
		}
		if len(got) != len(in.want) {
			t.Errorf("%s: got %d lines, want %d", in.reason, len(got), len(in.want))
			continue
		}
		for i, want := range in.want {
			if got[i].TooLong != want.TooLong || got[i].Ended != want.Ended || !bytes.Equal(got[i].Text, want.Text) {
				t.Errorf("%s: line %d is %+v, want %+v", in.reason, i, got[i], want)
			}
		}
	}
}

// TestDecompress requires that compressed and other text is read alike, and that a bad header is an error.
func TestDecompress(t *testing.T) {
	var compressed bytes.Buffer
	z := gzip.NewWriter(&compressed)
	_, _ = z.Write([]byte("a\n")) // memory never fails
	_ = z.Close()
	for _, data := range []string{"a\n", compressed.String()} {
		in, err := Decompress(strings.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		if text, err := io.ReadAll(in); err != nil || string(text) != "a\n" {
			t.Errorf("got %q, %v", text, err)
		}
	}
	if _, err := Decompress(strings.NewReader("\x1f\x8bno header")); !errors.Is(err, gzip.ErrHeader) {
		t.Errorf("got %v", err)
	}
	broken := errors.New("broken")
	in, err := Decompress(iotest.ErrReader(broken))
	if err == nil {
		_, err = in.ReadByte()
	}
	if !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}
