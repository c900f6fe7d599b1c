// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// A Key makes pseudonyms. Without it, no one can find out whether a guess is the value behind a pseudonym.
type Key struct{ secret []byte }

// keyBytes is the size of a key.
const keyBytes = 32

// NewKey returns a random key.
func NewKey() Key {
	secret := make([]byte, keyBytes)
	_, _ = rand.Read(secret) // it never fails
	return Key{secret}
}

// KeyFile reads a key from a file. If there is no such file, it writes a random key to it, which only the owner of the
// file can read.
func KeyFile(name string) (Key, error) {
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return writeKey(name)
	}
	if err != nil {
		return Key{}, fmt.Errorf("cannot read the key: %w", err)
	}
	secret, err := hex.DecodeString(strings.TrimSpace(string(text)))
	if err != nil || len(secret) != keyBytes {
		return Key{}, fmt.Errorf("%s is not a key: want %d hexadecimal digits", name, 2*keyBytes)
	}
	return Key{secret}, nil
}

func writeKey(name string) (Key, error) {
	k := NewKey()
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) { // another process has written it
		return KeyFile(name)
	}
	if err != nil {
		return Key{}, fmt.Errorf("cannot write the key: %w", err)
	}
	_, err = fmt.Fprintln(f, hex.EncodeToString(k.secret))
	if err = errors.Join(err, f.Close()); err != nil {
		return Key{}, errors.Join(fmt.Errorf("cannot write the key: %w", err), os.Remove(name))
	}
	return k, nil
}

// ID returns a name for the key. Recordings with the same name have the same pseudonyms for the same values.
func (k Key) ID() string { return hex.EncodeToString(k.sum("id", "")[:4]) }

// sum returns 32 bytes that depend on the key, the use and the text.
func (k Key) sum(use, text string) []byte {
	mac := hmac.New(sha256.New, k.secret)
	_, _ = mac.Write([]byte(use + "\x00")) // it never fails
	_, _ = mac.Write([]byte(text))
	return mac.Sum(nil)
}
