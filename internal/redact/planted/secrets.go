// SPDX-License-Identifier: Apache-2.0

// Package planted makes requests with secrets in many places, to test that the secrets are replaced.
package planted

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strconv"
	"strings"
)

// A Planter generates secrets and keeps a list of them. It is not safe for concurrent use.
type Planter struct {
	random  *rand.Rand
	Secrets []string
}

// New returns a planter. Equal seeds make equal secrets.
func New(seed uint64) *Planter {
	return &Planter{random: rand.New(rand.NewPCG(seed, 1))} // the secrets are not secret
}

const (
	lower  = "abcdefghijklmnopqrstuvwxyz"
	upper  = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	digits = "0123456789"
	signs  = `!#$%&*+-./:;<=>?@[]^_{|}~"'\`
)

func (p *Planter) text(alphabet string, n int) string {
	out := make([]byte, n)
	for i := range out {
		out[i] = alphabet[p.random.IntN(len(alphabet))]
	}
	return string(out)
}

// plant remembers a secret. The texts around it are not secret.
func (p *Planter) plant(before, secret, after string) string {
	p.Secrets = append(p.Secrets, secret)
	return before + secret + after
}

// mixed returns a text with letters of both cases and digits.
func (p *Planter) mixed(n int) string {
	return p.text(lower, 2) + p.text(lower+upper+digits, n-6) + p.text(digits, 2) + p.text(upper, 2)
}

// password returns a secret of any form, for a place where everything is secret.
func (p *Planter) password() string {
	switch p.random.IntN(11) {
	case 0:
		return p.plant("", p.text(lower, 12), "")
	case 1:
		return p.plant("", p.text(lower+digits, 6)+"7q", "")
	case 2:
		return p.plant("", "a"+p.text(lower+upper+digits+signs, 12)+"z", "")
	case 3:
		return p.plant("", "1"+p.text(digits, 11), "")
	case 4:
		return p.plant("", p.text(lower, 6)+" "+p.text(lower, 8)+" "+p.text(digits, 3), "")
	case 5:
		return p.plant("", "pä"+p.text(lower, 8)+"ß🙂", "")
	case 6:
		return p.plant("postgres://", p.text(lower, 8)+":"+p.text(lower+digits, 10)+"@db.example", "/shop")
	case 7:
		return p.plant(`{"user":"`, p.text(lower, 14), `"}`)
	case 8:
		return p.plant("-----BEGIN PRIVATE KEY-----\n", p.mixed(64), "\n-----END PRIVATE KEY-----\n")
	case 9:
		return p.plant("", p.mixed(40), "") + "\n" + p.plant("", p.text(lower+digits, 20), "")
	}
	return p.token()
}

// token returns a secret that has the form of one, or a name before it.
func (p *Planter) token() string {
	switch p.random.IntN(9) {
	case 0:
		return p.plant("", "eyJ"+p.mixed(20)+"."+p.mixed(40)+"."+p.mixed(30), "")
	case 1:
		return p.plant("Authorization: Bearer ", p.mixed(24), "")
	case 2:
		return p.plant("db_password=", "x"+p.text(lower+digits, 9), " host=db")
	case 3:
		return p.plant("https://ada:", p.text(lower+digits, 10)+"w", "@git.example/shop")
	case 4:
		return p.plant("", "ghp_"+p.mixed(36), "")
	case 5:
		return p.plant("see -----BEGIN EC PRIVATE KEY-----\n", p.mixed(64), "\n-----END EC PRIVATE KEY-----")
	case 6:
		return p.plant(`{"client_secret": "`, p.text(lower+digits, 16), `", "user": "ada"}`)
	case 7:
		return p.plant("run --api-key ", "k"+p.text(lower+digits, 15), " now")
	}
	return p.label()
}

// label returns a secret that has the form of one and is a valid label value.
func (p *Planter) label() string {
	if p.random.IntN(2) == 0 {
		return p.plant("", "AKIA"+p.text(upper+digits, 16), "")
	}
	return p.plant("", p.mixed(40), "")
}

// Surviving returns the secrets that are in a text, as they are or in an encoding.
func (p *Planter) Surviving(text string) (found []string) {
	for _, secret := range p.Secrets {
		for _, form := range forms(secret) {
			if strings.Contains(text, form) {
				found = append(found, fmt.Sprintf("%q as %q", secret, form))
				break
			}
		}
	}
	return found
}

// forms returns the ways to write a secret.
func forms(secret string) []string {
	quoted, _ := json.Marshal(secret) // a string always marshals
	nested, _ := json.Marshal(string(quoted))
	all := []string{secret, url.QueryEscape(secret), string(quoted[1 : len(quoted)-1]), string(nested[3 : len(nested)-3])}
	all = append(all, strings.Trim(strconv.Quote(secret), `"`))
	// Base64 writes three bytes in four characters, so there are three ways to write a part of a text.
	for skip := range 3 {
		if n := (len(secret) - skip) / 3 * 3; n >= 6 {
			all = append(all, base64.StdEncoding.EncodeToString([]byte(secret[skip:skip+n])))
		}
	}
	return all
}
