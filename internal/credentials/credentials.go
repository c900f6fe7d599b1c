// SPDX-License-Identifier: Apache-2.0

// Package credentials validates the tokens and passwords with which an API server authenticates to a webhook
// server. Its errors never contain them.
package credentials

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxBytes is the maximum length of a token, and of a user name together with its password.
const MaxBytes = 8 << 10

// MinTokenBytes is the length of the shortest token that a webhook server accepts. Any client can try to guess the
// token, so a shorter one is too weak.
const MinTokenBytes = 16

// CheckToken returns an error unless a bearer token has the syntax of RFC 6750.
func CheckToken(token string) error {
	if token == "" || strings.ContainsFunc(token, notOfToken) {
		return errors.New("is not a bearer token: want letters, digits and -._~+/= only")
	}
	return checkLength(len(token))
}

// CheckAcceptedToken returns an error unless the token passes CheckToken and has at least MinTokenBytes. It is for a
// token that a webhook server accepts. CheckToken is enough for the tokens in the configuration of an API server, which
// may belong to other webhooks.
func CheckAcceptedToken(token string) error {
	if err := CheckToken(token); err != nil {
		return err
	}
	if len(token) < MinTokenBytes {
		return fmt.Errorf("is shorter than %d bytes: make a random one, with openssl rand -hex 32", MinTokenBytes)
	}
	return nil
}

func notOfToken(r rune) bool {
	return !strings.ContainsRune("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~+/=", r)
}

// CheckPair returns an error unless a user name and its password have the syntax of RFC 7617 and can be
// written on one line as user:password.
func CheckPair(user, password string) error {
	pair := user + ":" + password
	switch {
	case user == "" || password == "":
		return errors.New("is not a user name with a password: one of them is empty")
	case strings.Contains(user, ":"):
		return errors.New("has a colon in the user name")
	case strings.ContainsFunc(pair, unicode.IsControl) || !utf8.ValidString(pair):
		return errors.New("has control characters or is not UTF-8")
	case strings.TrimSpace(pair) != pair:
		return errors.New("begins or ends with a space")
	case user[0] == '#' || strings.HasPrefix(user, "\ufeff"):
		return errors.New("begins with # or a byte order mark")
	case hashed(password):
		return errors.New("contains a hash, as htpasswd writes it: want the password itself")
	}
	return checkLength(len(pair))
}

func hashed(password string) bool {
	for _, prefix := range []string{"$2a$", "$2b$", "$2y$", "$apr1$", "$5$", "$6$", "{SHA}"} {
		if strings.HasPrefix(password, prefix) {
			return true
		}
	}
	return false
}

func checkLength(n int) error {
	if n > MaxBytes {
		return fmt.Errorf("is longer than %d bytes", MaxBytes)
	}
	return nil
}
