// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"regexp"
	"strings"
)

var problemPath = regexp.MustCompile(`([a-zA-Z][a-zA-Z0-9]*(?:\.[a-zA-Z][a-zA-Z0-9]*|\[[^\]]*\])+): (?:Invalid|Duplicate|Required|Forbidden|Not found|Unsupported|Too)`)

// ProblemPaths returns the field paths in the API server's messages as JSON pointers.
func ProblemPaths(text string) (pointers []string) {
	for _, match := range problemPath.FindAllStringSubmatch(text, -1) {
		var b strings.Builder
		for path := match[1]; path != ""; {
			if path[0] == '[' {
				key, rest, _ := strings.Cut(path[1:], "]")
				b.WriteString("/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(key))
				path = rest
				continue
			}
			path = strings.TrimPrefix(path, ".")
			end := strings.IndexAny(path, ".[")
			if end < 0 {
				end = len(path)
			}
			b.WriteString("/" + path[:end])
			path = path[end:]
		}
		pointers = append(pointers, b.String())
	}
	return pointers
}
