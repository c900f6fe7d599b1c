// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"strings"

	"github.com/admitkit/admitkit/internal/problem"
)

// ParseFlags parses flags for kube-apiserver of the form NAME=VALUE, which users give with --flag.
func ParseFlags(texts []string) (map[string][]string, error) {
	flags := map[string][]string{}
	for _, text := range texts {
		name, value, found := strings.Cut(strings.TrimLeft(text, "-"), "=")
		if !found || name == "" {
			return nil, problem.New("--flag %s is not NAME=VALUE", text).Hint("--flag v=4")
		}
		flags[name] = append(flags[name], value)
	}
	return flags, nil
}
