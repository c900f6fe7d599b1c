// SPDX-License-Identifier: Apache-2.0

package redact

import "strings"

// manifest matches the kind of a manifest of a Secret or ConfigMap.
var manifest = lazy(`(?m)^[ \t-]*["']?kind["']?[ \t]*:[ \t]*["']?(Secret|ConfigMap)\b`)

// isHeader reports whether a name is that of a header whose value has several words.
func isHeader(name string) bool {
	last, _ := lastWords(name)
	return last == "authorization" || last == "cookie"
}

// header adds the words of the value of a header that begins at i. The value ends at a quote or at the end of the line.
// Of Authorization, only two words count, because the name is also a usual word of messages.
func (s *scanner) header(i int, name string) {
	for i < len(s.text) && strings.IndexByte(" \t\"'\\", s.text[i]) >= 0 {
		i++
	}
	most := 2
	if last, _ := lastWords(name); last == "cookie" {
		most = len(s.text)
	}
	for words := 0; words < most && i < len(s.text); words++ {
		end := i
		for end < len(s.text) && strings.IndexByte(" ;\r\n\"'`\\", s.text[end]) < 0 {
			end++
		}
		word := s.text[i:end]
		if words == 0 && proseWords[strings.ToLower(strings.TrimRight(word, ".:"))] {
			return
		}
		if _, value, ok := strings.Cut(word, "="); ok && most > 2 { // name=value
			i = end - len(value)
		}
		s.add(i, end)
		for i = end; i < len(s.text) && (s.text[i] == ' ' || s.text[i] == ';'); i++ {
		}
		if i == end {
			return
		}
	}
}

// xml adds the text of an XML element, if the tag before i names a credential.
func (s *scanner) xml(start, i int, name string) {
	if start == 0 || s.text[start-1] != '<' && s.text[start-1] != ':' || !isCredential(name) {
		return
	}
	if end := strings.IndexByte(s.text[i:], '<'); end > 0 {
		s.add(i+1, i+end)
	}
}

// base64At returns the word of base64 after spaces and quotes, or its beginning.
func (s *scanner) base64At(i int) string {
	const most = 1024
	text := strings.TrimLeft(s.text[i:min(i+most, len(s.text))], " \t\"'\\")
	end := 0
	for end < len(text) && (isWordByte(text[end]) || strings.IndexByte("+/=_-", text[end]) >= 0) {
		end++
	}
	return text[:end]
}

// wordAt returns the word that begins at i.
func (s *scanner) wordAt(i int) string {
	end := strings.IndexAny(s.text[i:], " \t\r\n;&|")
	if end < 0 {
		return s.text[i:]
	}
	return s.text[i : i+end]
}

// flags finds passwords in flags of one letter, as in mysql -phunter2 and curl -u ada:hunter2.
func (s *scanner) flags() {
	for start := 0; start < len(s.text); start++ {
		word := s.wordAt(start)
		end := start + len(word)
		switch rest, isP := strings.CutPrefix(word, "-p"); {
		case isP && isPassword(strings.Trim(rest, "\"'")):
			s.add(start+len("-p"), end)
		case word == "-u" || word == "--user":
			if end < len(s.text) {
				s.userPassword(end+1, s.wordAt(end+1))
			}
		case strings.HasPrefix(word, "--user="):
			s.userPassword(start+len("--user="), word[len("--user="):])
		}
		start = end
	}
}

// userPassword adds the password of a text such as ada:hunter2. Of numbers, it is a user and a group.
func (s *scanner) userPassword(start int, text string) {
	if user, password, ok := strings.Cut(text, ":"); ok && user != "" && strings.Trim(text, digits+":") != "" {
		s.add(start+len(text)-len(password), start+len(strings.TrimRight(text, "\"'")))
	}
}

// isPassword reports whether the rest of a flag such as -phunter2 can be a password, and not the rest of a name such as
// -port or -path=/etc.
func isPassword(rest string) bool {
	return strings.Trim(rest, digits) != "" && !strings.ContainsAny(rest, "=/:-") && strings.ContainsAny(rest, digits)
}

// mayBePassword reports whether the argument after the flag -p can be a password. It can also be a port or a path, as in
// mkdir -p /data.
func mayBePassword(argument string) bool {
	argument = strings.Trim(argument, "\"'")
	return strings.Trim(argument, digits+".:") != "" && strings.IndexByte("/.~$", argument[0]) < 0
}

// longer returns the end of the word that ends at end if only white space and quotes end it.
func (s *scanner) longer(end int) int {
	const most = 256
	if rest := strings.IndexAny(s.text[end:min(end+most, len(s.text))], " \t\r\n\"'`<>"); rest >= 0 {
		return end + rest
	}
	return min(end+most, len(s.text))
}

// block adds the lines of the value of a YAML field, if the value begins in the line after i: a text after | or >, a
// list, or a text without quotes. It reports whether there is such a value.
func (s *scanner) block(i int) bool {
	if i == len(s.text) || strings.IndexByte("\r\n|>", s.text[i]) < 0 {
		return false
	}
	head, after, ok := strings.Cut(s.text[i:], "\n")
	head = strings.TrimRight(head, " \r")
	literal := head != "" && (head[0] == '|' || head[0] == '>') && strings.Trim(head[1:], digits+"+-") == ""
	if !ok || head != "" && !literal {
		return false
	}
	line := s.text[strings.LastIndexByte(s.text[:i], '\n')+1 : i]
	indent := len(line) - len(strings.TrimLeft(line, " -"))
	for at := len(s.text) - len(after); at < len(s.text); {
		line, _, _ := strings.Cut(s.text[at:], "\n")
		text := strings.TrimLeft(line, " ")
		start := at + len(line) - len(text)
		isItem := strings.HasPrefix(text, "- ") && !literal
		switch text = strings.TrimRight(text, " \t\r"); {
		case text == "":
		case start-at < indent || start-at == indent && !isItem:
			return true
		case !literal && (strings.Contains(text, ": ") || strings.HasSuffix(text, ":")):
			return true // a map, such as a reference to a Secret
		default:
			end := start + len(text)
			if isItem {
				start += len("- ")
			}
			value := strings.Trim(s.text[start:end], " ")
			start = end - len(strings.TrimLeft(s.text[start:end], " "))
			if !literal && len(value) > 1 && (value[0] == '"' || value[0] == '\'') {
				start, end = start+1, end-1
			}
			s.add(start, end)
		}
		at += len(line) + 1
	}
	return true
}
