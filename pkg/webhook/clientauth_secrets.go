// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/admitkit/admitkit/internal/reload"
)

// maxSecretBytes bounds a token, and a user name with its password.
const maxSecretBytes = 8 << 10

// secrets are digests of tokens, or of user names with passwords.
type secrets [][sha256.Size]byte

// holds compares with all of them, in a time that tells nothing of what they are.
func (s secrets) holds(credential string) bool {
	if len(credential) > maxSecretBytes {
		return false
	}
	digest, found := sha256.Sum256([]byte(credential)), 0
	for i := range s {
		found |= subtle.ConstantTimeCompare(digest[:], s[i][:])
	}
	return found == 1
}

// bearer is the kind of credentials of RFC 6750.
func bearer(known *reload.Files[secrets]) credentialKind {
	return func(r *http.Request) error {
		scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		if !strings.EqualFold(scheme, "Bearer") {
			return errNoCredential
		}
		if tokens, _ := known.Get(); !tokens.holds(strings.TrimSpace(token)) {
			return errors.New("the webhook server does not know the bearer token")
		}
		return nil
	}
}

// basic is the kind of credentials of RFC 7617.
func basic(known *reload.Files[secrets]) credentialKind {
	return func(r *http.Request) error {
		if scheme, _, _ := strings.Cut(r.Header.Get("Authorization"), " "); !strings.EqualFold(scheme, "Basic") {
			return errNoCredential
		}
		user, password, ok := r.BasicAuth()
		if pairs, _ := known.Get(); !ok || !pairs.holds(user+":"+password) { // no user has a colon in it
			return errors.New("the webhook server does not know the user name, or not with this password")
		}
		return nil
	}
}

// parseTokens reads a file of tokens. Nothing of them must be in an error, which is logged.
func parseTokens(content []byte) (secrets, error) {
	tokens, err := parseSecrets(content, func(line string) error {
		if strings.ContainsFunc(line, notOfToken) {
			return errors.New("is not a bearer token: it has characters other than letters, digits and -._~+/=")
		}
		return nil
	})
	if err == nil && len(tokens) == 0 {
		return nil, errors.New("there is no bearer token in it: write one on a line of its own")
	}
	return tokens, err
}

const tokenCharacters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~+/="

func notOfToken(r rune) bool { return !strings.ContainsRune(tokenCharacters, r) }

// parseBasic reads a file of user names and passwords, as parseTokens does.
func parseBasic(content []byte) (secrets, error) {
	pairs, err := parseSecrets(content, checkPair)
	if err == nil && len(pairs) == 0 {
		return nil, errors.New("there is no user name with a password in it: write user:password on a line of its own")
	}
	return pairs, err
}

func checkPair(line string) error {
	user, password, ok := strings.Cut(line, ":")
	switch {
	case !ok || user == "" || password == "":
		return errors.New("is not of the form user:password")
	case strings.ContainsFunc(line, unicode.IsControl) || !utf8.ValidString(line):
		return errors.New("has control characters or is not UTF-8")
	case hashed(password):
		return errors.New("has a hash, as htpasswd writes it: write the password itself")
	}
	return nil
}

func hashed(password string) bool {
	for _, prefix := range []string{"$2a$", "$2b$", "$2y$", "$apr1$", "$5$", "$6$", "{SHA}"} {
		if strings.HasPrefix(password, prefix) {
			return true
		}
	}
	return false
}

// parseSecrets reads the lines that count. All lines must be good: to leave one out in silence
// would be found out when it is needed.
func parseSecrets(content []byte, check func(line string) error) (secrets, error) {
	var all secrets
	content = bytes.TrimPrefix(content, []byte("\ufeff")) // as some editors begin a file
	for i, line := range bytes.Split(content, []byte("\n")) {
		line = bytes.TrimSpace(line)
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		err := check(string(line))
		if len(line) > maxSecretBytes {
			err = fmt.Errorf("is longer than %d bytes", maxSecretBytes)
		}
		if err != nil {
			return nil, fmt.Errorf("line %d %w", i+1, err)
		}
		all = append(all, sha256.Sum256(line))
	}
	return all, nil
}
