// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"strings"
	"unicode"
)

// isCredential reports whether a name is that of a credential: of a field, an annotation, an environment variable, a
// header, a flag or a parameter. Only the last word counts, so secretName and tokenExpirationSeconds are not. A number
// or a word such as value after it does not count.
func isCredential(name string) bool {
	last, previous := lastWords(name)
	if credentialWords[last] || (strings.HasSuffix(last, "pass") || strings.HasSuffix(last, "pw")) && !notPasswords[last] {
		return true
	}
	switch last {
	case "key", "keys":
		return keyOwners[previous]
	case "id":
		name = strings.ToLower(name)
		return strings.HasSuffix(name, "access_key_id") || strings.HasSuffix(name, "accesskeyid")
	case "string":
		return previous == "connection" || previous == "secret"
	case "signature": // of a URL of a store
		return previous == "amz"
	}
	one := strings.TrimSuffix(last, "s")
	for _, suffix := range credentialSuffixes {
		if strings.HasSuffix(one, suffix) {
			return true
		}
	}
	return false
}

// isPlural reports whether a name may be that of a count, such as maxTokens.
func isPlural(name string) bool { return strings.HasSuffix(strings.ToLower(name), "s") }

// credentialWords mark a name as that of a credential. credentialSuffixes do so at the end of a word, as in PGPASSWORD.
var (
	credentialWords = setOf(`pwd pass credential credentials creds authorization cookie cookies jwt otp pat bearer dsn
		psk keytab sig`)
	credentialSuffixes = strings.Fields(`password passwd passphrase secret token apikey accesskey secretkey privatekey
		userkey`)
)

// notPasswords are words that end in pass and are no passwords. qualifiers are words that may follow the name of a
// credential, as in passwordBase64, after which only the digits are removed.
var (
	notPasswords = setOf("bypass compass encompass overpass surpass trespass underpass")
	qualifiers   = setOf("base b encoded literal new old plain plaintext text value")
)

// keyOwners are the words before "key" that mark a secret key.
var keyOwners = setOf(`api access secret private signing encryption master shared account storage license auth client ssh
	deploy session app application service tls wireguard preshared recovery`)

// lastWords returns the last two words of a name in lower case. It splits camelCase, and at all other characters than
// letters and digits. Of an annotation, only the part after the slash counts.
func lastWords(name string) (last, previous string) {
	name = strings.TrimRightFunc(name, func(r rune) bool { return !unicode.IsLetter(r) })
	last, rest := cutWord(name)
	for qualifiers[last] && rest != "" {
		last, rest = cutWord(rest)
	}
	last = strings.TrimRight(last, digits)
	previous, _ = cutWord(rest)
	return last, previous
}

// cutWord returns the last word of a name in lower case, and the part of the name before it.
func cutWord(name string) (word, rest string) {
	end := len(name)
	for end > 0 && !isWordByte(name[end-1]) {
		if end--; name[end] == '/' {
			return "", ""
		}
	}
	start := end
	for start > 0 && isWordByte(name[start-1]) {
		start--
		// "apiKey" has the words api and Key, "API_KEY" and "APIKey" have API and KEY or Key.
		if isUpper(name[start]) && (start == 0 || !isUpper(name[start-1]) || start+1 < end && !isUpper(name[start+1])) {
			break
		}
	}
	return strings.ToLower(name[start:end]), name[:start]
}

func isUpper(b byte) bool { return 'A' <= b && b <= 'Z' }

func isWordByte(b byte) bool {
	return 'a' <= b && b <= 'z' || isUpper(b) || '0' <= b && b <= '9'
}

// isEnvironment reports whether a name is that of a list or map of environment variables. loose reports whether the
// name can also have another meaning.
func isEnvironment(name string) (is, loose bool) {
	last, previous := lastWords(name)
	switch last {
	case "env", "envs", "envvar", "envvars":
		return true, false
	case "vars", "variables":
		return previous == "env" || previous == "environment", false
	case "environment":
		return true, true
	}
	return false, false
}

// isVariable reports whether a name looks like that of an environment variable.
func isVariable(name string) bool {
	for _, c := range name {
		if c != '_' && !unicode.IsDigit(c) && !unicode.IsUpper(c) {
			return false
		}
	}
	return name != ""
}

// publicNames are the names of fields that identify objects. A secret that equals the value of such a field is no
// longer secret, and replacing the value would make the request about another object.
var publicNames = setOf(`kind apiVersion name generateName namespace uid operation username resource group version
	subResource image type protocol fieldManager manager topologyKey effect operator`)

// isPublic reports whether a field with this name identifies something or has one of a few values.
func isPublic(name string) bool {
	return publicNames[name] || strings.HasSuffix(name, "Name") || strings.HasSuffix(name, "Policy")
}
