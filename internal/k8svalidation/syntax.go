// SPDX-License-Identifier: Apache-2.0

package k8svalidation

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// The functions in this file return the messages of apimachinery for an invalid text. They avoid its regular
// expressions for valid texts, which are the common case.

func badLabel(s string) []string {
	if plainDNS(s, validation.DNS1123LabelMaxLength, false) {
		return nil
	}
	return validation.IsDNS1123Label(s)
}

func badSubdomain(s string) []string {
	if plainDNS(s, validation.DNS1123SubdomainMaxLength, true) {
		return nil
	}
	return validation.IsDNS1123Subdomain(s)
}

// plainDNS reports whether s consists of lower-case letters and digits with single hyphens between them, and is no
// longer than most. With dots, single dots may be between them too.
func plainDNS(s string, most int, dots bool) bool {
	if s == "" || len(s) > most {
		return false
	}
	between := true
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z' || '0' <= c && c <= '9':
			between = false
		case between || c != '-' && (c != '.' || !dots):
			return false
		default:
			between = true
		}
	}
	return !between
}

// badLabelKey returns the errors in a label key. For the key of an annotation, the caller converts it to lower case
// first.
func badLabelKey(s string) []string {
	prefix, name, found := strings.Cut(s, "/")
	if !found {
		prefix, name = "a", s
	}
	if plainDNS(prefix, validation.DNS1123SubdomainMaxLength, true) && plainWord(name) {
		return nil
	}
	return validation.IsQualifiedName(s)
}

func badLabelValue(s string) []string {
	if s == "" || plainWord(s) {
		return nil
	}
	return validation.IsValidLabelValue(s)
}

// plainWord reports whether s is a valid label value: letters and digits with "-_." between them.
func plainWord(s string) bool {
	if s == "" || len(s) > validation.LabelValueMaxLength || !isAlphanumeric(s[0]) || !isAlphanumeric(s[len(s)-1]) {
		return false
	}
	for i := range len(s) {
		if c := s[i]; !isAlphanumeric(c) && c != '-' && c != '_' && c != '.' {
			return false
		}
	}
	return true
}

func isAlphanumeric(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

// badEnvName returns the errors in the name of an environment variable, by the relaxed rule that API servers have had
// since v1.32.
func badEnvName(s string) []string {
	for i := range len(s) {
		if c := s[i]; !isAlphanumeric(c) && c != '_' {
			return validation.IsRelaxedEnvVarName(s)
		}
	}
	if s == "" {
		return validation.IsRelaxedEnvVarName(s)
	}
	return nil
}

func badDataKey(s string) []string {
	if plainWord(s) {
		return nil
	}
	return validation.IsConfigMapKey(s)
}
