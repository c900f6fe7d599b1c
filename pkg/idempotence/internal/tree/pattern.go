// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"strings"
)

// Matches reports whether the pattern matches the path or one of its parents. A pattern has the form of a path. [*]
// matches any element or member. In the key of an element, * matches any text: spec.volumes[name=creds-*]. A pattern
// may skip elements: spec.containers.image matches the image of each container.
func (p Path) Matches(pattern string) bool { return matchSteps(p, parsePattern(pattern)) }

// LeadsTo reports whether the pattern may match a value inside of the value at p.
func (p Path) LeadsTo(pattern string) bool { return stepsLead(p, parsePattern(pattern)) }

func matchSteps(p Path, parts []string) bool {
	if len(parts) == 0 {
		return true
	}
	if len(p) == 0 {
		return false
	}
	if p[0].matches(parts[0]) && matchSteps(p[1:], parts[1:]) {
		return true
	}
	return p[0].Element && matchSteps(p[1:], parts)
}

func stepsLead(p Path, parts []string) bool {
	if len(p) == 0 || len(parts) == 0 {
		return len(parts) > 0
	}
	if p[0].matches(parts[0]) && stepsLead(p[1:], parts[1:]) {
		return true
	}
	return p[0].Element && stepsLead(p[1:], parts)
}

// matches reports whether one part of a pattern matches the step.
func (s Step) matches(part string) bool {
	switch {
	case part == "*":
		return true
	case s.Element:
		return matchGlob(part, s.Key)
	}
	return s.Name == part
}

// matchGlob reports whether text equals the pattern, in which each * stands for any text.
func matchGlob(pattern, text string) bool {
	pieces := strings.Split(pattern, "*")
	first, last := pieces[0], pieces[len(pieces)-1]
	if len(pieces) == 1 {
		return text == first
	}
	if len(text) < len(first)+len(last) || !strings.HasPrefix(text, first) || !strings.HasSuffix(text, last) {
		return false
	}
	text = text[len(first) : len(text)-len(last)]
	for _, piece := range pieces[1 : len(pieces)-1] {
		_, after, found := strings.Cut(text, piece)
		if !found {
			return false
		}
		text = after
	}
	return true
}

// parsePattern splits a pattern at its dots and brackets.
func parsePattern(pattern string) (parts []string) {
	for pattern != "" {
		switch i := strings.IndexAny(pattern, ".["); {
		case pattern[0] == '[':
			end := strings.IndexByte(pattern, ']')
			if end < 0 {
				return append(parts, pattern[1:])
			}
			parts, pattern = append(parts, pattern[1:end]), strings.TrimPrefix(pattern[end+1:], ".")
		case i < 0:
			return append(parts, pattern)
		default:
			parts = append(parts, pattern[:i])
			pattern = strings.TrimPrefix(pattern[i:], ".")
		}
	}
	return parts
}
