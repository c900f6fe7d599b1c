// SPDX-License-Identifier: Apache-2.0

// Package genblock replaces the generated block of a YAML file, which is between two marker comments. The text around
// the block belongs to the user and stays.
package genblock

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

const (
	begin = "# BEGIN GENERATED with --output, which replaces this block and nothing else.\n"
	end   = "# END GENERATED\n"
)

// anyBegin matches the first line of a block. Its words do not count, because older versions wrote others.
var anyBegin = regexp.MustCompile(`(?m)^# BEGIN GENERATED .*\n`)

// New returns a file that consists of a block with the text.
func New(text []byte) []byte { return fmt.Appendf(nil, "%s%s%s", begin, text, end) }

// Find returns the text of the block. ok is false if the file does not have exactly one block.
func Find(file []byte) (text []byte, ok bool) {
	_, text, _, err := split(file)
	return text, err == nil
}

// Replace returns the file with text as the new text of its block. The marker comments stay as they are. If the file is
// empty or has only white space, it returns New(text). It fails if any other file does not have exactly one block.
func Replace(file, text []byte) ([]byte, error) {
	if len(bytes.TrimSpace(file)) == 0 {
		return New(text), nil
	}
	before, _, after, err := split(file)
	if err != nil {
		return nil, err
	}
	return slices.Concat(before, text, after), nil
}

// split returns the text of the block, and the parts of the file before and after it, each with its marker comment.
func split(file []byte) (before, text, after []byte, err error) {
	if begins := anyBegin.FindAllIndex(file, 2); len(begins) == 1 {
		start := begins[0][1]
		if length := bytes.Index(file[start:], []byte(end)); length >= 0 {
			return file[:start], file[start : start+length], file[start+length:], nil
		}
	}
	return nil, nil, nil, errors.New("the file does not have exactly one generated block. Move your own objects to another file and delete this one, " +
		"or put these two lines where the block belongs:\n" + begin + strings.TrimSuffix(end, "\n"))
}

// Changes returns the lines that only one of two texts has. Lines of the old text begin with -, lines of the new text
// with +.
func Changes(old, now []byte) string {
	count := map[string]int{}
	for line := range strings.Lines(string(now)) {
		count[line]++
	}
	var out strings.Builder
	for line := range strings.Lines(string(old)) {
		if count[line]--; count[line] < 0 {
			out.WriteString("- " + line)
		}
	}
	clear(count)
	for line := range strings.Lines(string(old)) {
		count[line]++
	}
	for line := range strings.Lines(string(now)) {
		if count[line]--; count[line] < 0 {
			out.WriteString("+ " + line)
		}
	}
	return out.String()
}
