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

	"github.com/admitkit/admitkit/internal/credentials"
	"github.com/admitkit/admitkit/internal/reload"
)

// secrets are digests of tokens, or of user names with passwords.
type secrets [][sha256.Size]byte

// holds compares with all of them, in a time that tells nothing of what they are.
func (s secrets) holds(credential string) bool {
	if len(credential) > credentials.MaxBytes {
		return false
	}
	digest, found := sha256.Sum256([]byte(credential)), 0
	for i := range s {
		found |= subtle.ConstantTimeCompare(digest[:], s[i][:])
	}
	return found == 1
}

var errSeveral = errors.New("the call has several Authorization headers, of which the webhook server takes none")

// shown returns what the call shows by a scheme. What is in front of the server may look at
// another of several headers than the server does, so they do not count.
func shown(r *http.Request, scheme string) (string, error) {
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

// bearer is the kind of credentials of RFC 6750.
func bearer(known *reload.Files[secrets]) credentialKind {
	return func(r *http.Request) error {
		token, err := shown(r, "Bearer")
		if err != nil {
			return err
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
		if _, err := shown(r, "Basic"); err != nil {
			return err
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
	tokens, err := parseSecrets(content, credentials.CheckAcceptedToken)
	if err == nil && len(tokens) == 0 {
		return nil, errors.New("there is no bearer token in it: write one on a line of its own")
	}
	return tokens, err
}

// parseBasic reads a file of user names and passwords, as parseTokens does.
func parseBasic(content []byte) (secrets, error) {
	pairs, err := parseSecrets(content, func(line string) error {
		user, password, ok := strings.Cut(line, ":")
		if !ok {
			return errors.New("is not of the form user:password")
		}
		return credentials.CheckPair(user, password)
	})
	if err == nil && len(pairs) == 0 {
		return nil, errors.New("there is no user name with a password in it: write user:password on a line of its own")
	}
	return pairs, err
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
		if err := check(string(line)); err != nil {
			return nil, fmt.Errorf("line %d %w", i+1, err)
		}
		all = append(all, sha256.Sum256(line))
	}
	return all, nil
}
