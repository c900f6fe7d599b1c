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

// passwordFlags are flags of one letter that give a password to common programs, such as redis-cli -a hunter2. Other
// programs use them for other purposes.
var passwordFlags = setOf("-a -k -P -w")

// flags finds passwords in flags of one letter, as in mysql -phunter2 and curl -u ada:hunter2, and the values of
// kubectl create secret.
func (s *scanner) flags() {
	for start := 0; start < len(s.text); start++ {
		word := s.wordAt(start)
		end := start + len(word)
		next := s.wordAt(min(end+1, len(s.text)))
		letter, rest := word[:min(2, len(word))], word[min(2, len(word)):]
		switch {
		case (letter == "-p" || passwordFlags[letter]) && isPassword(strings.Trim(rest, "\"'")):
			s.add(start+len(letter), end)
		case passwordFlags[word] && isPassword(strings.Trim(next, "\"'")):
			s.add(end+1, end+1+len(next))
		case word == "-u" || word == "--user":
			s.userPassword(end+1, next, ":")
		case word == "-U":
			s.userPassword(end+1, next, "%")
		case letter == "-u":
			s.userPassword(start+len(letter), rest, ":")
		case strings.HasPrefix(word, "--user="):
			s.userPassword(start+len("--user="), word[len("--user="):], ":")
		case word == "--from-literal":
			s.literal(end+1, next)
		case strings.HasPrefix(word, "--from-literal="):
			s.literal(start+len("--from-literal="), word[len("--from-literal="):])
		}
		start = end
	}
}

// literal adds the value of a text such as key=value.
func (s *scanner) literal(start int, text string) {
	if name, value, ok := strings.Cut(text, "="); ok {
		s.add(start+len(name)+1, start+len(name)+1+len(strings.TrimRight(value, "\"'")))
	}
}

// echoed matches the text that a script sends to the standard input of another program.
var echoed = lazy(`\b(?:echo|printf)\s+(?:-\w+\s+|"%s(?:\\n)?"\s+|'%s(?:\\n)?'\s+)*("[^"|]*"|'[^'|]*'|[^\s"'|;&]+)\s*\|`)

// input finds passwords that a script sends to the standard input of a program, as for docker login --password-stdin.
func (s *scanner) input() {
	if !strings.Contains(s.text, "|") || !strings.Contains(s.text, "-stdin") && !strings.Contains(s.text, "passwd") {
		return
	}
	for _, m := range echoed().FindAllStringSubmatchIndex(s.text, -1) {
		if text := s.text[m[2]:m[3]]; text[0] == '"' || text[0] == '\'' {
			m[2], m[3] = m[2]+1, m[3]-1
		}
		if m[2] < m[3] && s.text[m[2]] != '$' {
			s.add(m[2], m[3])
		}
	}
}

// wordBefore adds the word after the space at i if the word before it names a credential, as in a .netrc file, in
// "requirepass hunter2", and in SQL. In a sentence, the next word is one only if it is in quotes or has a digit.
func (s *scanner) wordBefore(i int) {
	start := i
	for start > 0 && i-start < 40 && (isWordByte(s.text[start-1]) || s.text[start-1] == '_') {
		start--
	}
	name := strings.ToLower(s.text[start:i])
	begins := start == 0 || strings.IndexByte(" \t\r\n,;(", s.text[start-1]) >= 0
	if !begins || !isCredential(name) && name != "by" || isHeader(name) || authSchemes[name] || strings.HasPrefix(name, "secret") {
		return // a Secret is an object
	}
	if name == "by" && !strings.Contains(strings.ToLower(s.text[max(0, start-40):start]), "identified") {
		return
	}
	for i < len(s.text) && (s.text[i] == ' ' || s.text[i] == '\t') {
		i++
	}
	line := s.text[strings.LastIndexByte(s.text[:start], '\n')+1 : start]
	word := s.wordAt(i)
	after := strings.Trim(word, "\"'")
	isLine := s.lines && strings.TrimSpace(line) == "" && (i+len(word) == len(s.text) || strings.IndexByte("\r\n", s.text[i+len(word)]) >= 0)
	switch {
	case after == "" || isReferenceAt(after) || strings.ContainsAny(after[:1], "=:<>-$"):
	case word[0] == '\'' || word[0] == '"', isLine && !proseWords[after], isPassword(after) && len(after) >= 6:
		s.value(i, false)
	}
}

// isValueOfCredential reports whether an attribute that begins at start belongs to an XML element that names a
// credential, as in <add key="Password" value="…"/>.
func (s *scanner) isValueOfCredential(start int) bool {
	before := s.text[max(0, start-200):start]
	tag := before[strings.LastIndexByte(before, '<')+1:]
	if len(tag) == len(before) || strings.Contains(tag, ">") {
		return false
	}
	for _, m := range attribute().FindAllStringSubmatch(tag, -1) {
		if isCredential(m[1]) {
			return true
		}
	}
	return false
}

var attribute = lazy(`(?i)\b(?:key|name|id)\s*=\s*\\?["']([^"'\\]*)`)

// userPassword adds the password of a text such as ada:hunter2. Of numbers, it is a user and a group.
func (s *scanner) userPassword(start int, text, separator string) {
	user, password, ok := strings.Cut(text, separator)
	if ok && user != "" && strings.Trim(text, digits+":") != "" {
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
