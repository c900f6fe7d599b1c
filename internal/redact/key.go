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

// A Key makes pseudonyms. Without the key, a guess of a secret cannot be compared with a pseudonym.
type Key struct{ secret []byte }

// keyBytes is the size of a key.
const keyBytes = 32

// NewKey returns a random key.
func NewKey() Key {
	secret := make([]byte, keyBytes)
	_, _ = rand.Read(secret) // it never fails
	return Key{secret}
}

// KeyFile reads a key from a file. If the file does not exist, KeyFile creates it with a random key. Only its owner can
// read it. KeyFile returns an error if the file cannot be read or created, or has another content.
func KeyFile(name string) (Key, error) {
	k, err := ReadKey(name)
	if errors.Is(err, fs.ErrNotExist) {
		return writeKey(name)
	}
	return k, err
}

// ReadKey reads a key from a file, which must exist.
func ReadKey(name string) (Key, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return Key{}, fmt.Errorf("cannot read the key: %w", err)
	}
	secret, err := hex.DecodeString(strings.TrimSpace(string(text)))
	if err != nil || len(secret) != keyBytes {
		return Key{}, fmt.Errorf("%s is not a key: want %d hexadecimal digits; to get a new key, name a new file", name, 2*keyBytes)
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

// sum returns a MAC of the text with the key, in 32 bytes. Different uses give different sums.
func (k Key) sum(use, text string) []byte {
	mac := hmac.New(sha256.New, k.secret)
	_, _ = mac.Write([]byte(use + "\x00")) // it never fails
	_, _ = mac.Write([]byte(text))
	return mac.Sum(nil)
}
