// SPDX-License-Identifier: Apache-2.0

package clientauth

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/admitkit/admitkit/internal/credentials"
	"github.com/admitkit/admitkit/internal/reload"
)

// secrets are digests of tokens, or of user names with passwords.
type secrets [][sha256.Size]byte

// contains reports whether a credential is one of the secrets. It compares the credential with all of them, in constant
// time.
func (s secrets) contains(credential string) bool {
	if len(credential) > credentials.MaxBytes {
		return false
	}
	digest, found := sha256.Sum256([]byte(credential)), 0
	for i := range s {
		found |= subtle.ConstantTimeCompare(digest[:], s[i][:])
	}
	return found == 1
}

var errSeveral = errors.New("the call has several Authorization headers; the webhook server accepts only one")

// authorization returns the credentials that the call sends with an authentication scheme, such as Bearer.
// Several headers are an error: a proxy in front of the server might have checked a different one.
func authorization(r *http.Request, scheme string) (string, error) {
	headers := r.Header["Authorization"]
	if len(headers) > 1 {
		return "", errSeveral
	}
	if len(headers) == 1 {
		if first, rest, _ := strings.Cut(headers[0], " "); strings.EqualFold(first, scheme) {
			return rest, nil
		}
	}
	return "", errNoCredential
}

// bearer returns the check of bearer tokens (RFC 6750).
func bearer(known *reload.Files[secrets]) check {
	return func(r *http.Request) error {
		token, err := authorization(r, "Bearer")
		if err != nil {
			return err
		}
		if tokens, _ := known.Get(); !tokens.contains(strings.TrimSpace(token)) {
			return errors.New("the webhook server does not know the bearer token")
		}
		return nil
	}
}

// basic returns the check of user names and passwords (RFC 7617).
func basic(known *reload.Files[secrets]) check {
	return func(r *http.Request) error {
		if _, err := authorization(r, "Basic"); err != nil {
			return err
		}
		user, password, ok := r.BasicAuth()
		if pairs, _ := known.Get(); !ok || !pairs.contains(user+":"+password) { // a user name has no colon
			return errors.New("the webhook server does not know this user name and password")
		}
		return nil
	}
}

// parseTokens reads a file of tokens. Errors are logged, so they must not quote a token.
func parseTokens(content []byte) (secrets, error) {
	tokens, err := parseSecrets(content, credentials.CheckAcceptedToken)
	if err == nil && len(tokens) == 0 {
		return nil, errors.New("the file holds no bearer token: write one on a line of its own")
	}
	return tokens, err
}

// parseBasic reads a file of user names and passwords. As in parseTokens, errors must not quote a password.
func parseBasic(content []byte) (secrets, error) {
	pairs, err := parseSecrets(content, func(line string) error {
		user, password, ok := strings.Cut(line, ":")
		if !ok {
			return errors.New("is not of the form user:password")
		}
		return credentials.CheckPair(user, password)
	})
	if err == nil && len(pairs) == 0 {
		return nil, errors.New("the file holds no user name with a password: write user:password on a line of its own")
	}
	return pairs, err
}

// parseSecrets reads the lines that are not empty or comments. One invalid line makes the whole file
// invalid, so that the mistake shows before the credential is used.
func parseSecrets(content []byte, check func(line string) error) (secrets, error) {
	var all secrets
	content = bytes.TrimPrefix(content, []byte("\ufeff")) // the byte order mark of some editors
	for i, line := range bytes.Split(content, []byte("\n")) {
		line = bytes.TrimSpace(line)
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		if err := check(string(line)); err != nil {
			return nil, fmt.Errorf("line %d %w", i+1, err)
		}
		all = append(all, sha256.Sum256(line))
	}
	return all, nil
}
