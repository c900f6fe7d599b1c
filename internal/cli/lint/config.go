// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/admitkit/admitkit/internal/problem"
	"github.com/admitkit/admitkit/pkg/lint"
)

// DefaultConfig is the file with suppressions that is read by default, if it exists.
const DefaultConfig = ".admitkit-lint.yaml"

// config is the content of a file with suppressions.
type config struct {
	file   string
	ignore []lint.Ignore
	lines  []int // line numbers of the entries of ignore
}

// readConfig reads a file of this form:
//
//	ignore:
//	- rule: AK203
//	  object: ValidatingWebhookConfiguration/policy
//	  webhook: policy.example.com
//	  reason: it guards kube-system on purpose
func readConfig(name string) (*config, error) {
	c := &config{file: name}
	if name == "" {
		c.file = DefaultConfig
	}
	text, err := os.ReadFile(c.file)
	if name == "" && errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return nil, problem.New("%w", err).Hint("--config FILE")
	}
	var document struct {
		Ignore []struct {
			Rule, Object, Webhook, Reason string
		}
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(&document); err != nil && !errors.Is(err, io.EOF) {
		message := strings.ReplaceAll(strings.TrimPrefix(err.Error(), "yaml: "), "unmarshal errors:\n  ", "")
		message, _, _ = strings.Cut(strings.ReplaceAll(message, "\n  ", "; "), " in type struct")
		return nil, problem.New("%s: %s", c.file, message).Hint(`write a list "ignore"; each entry can have the keys rule, object, webhook and reason`)
	}
	for _, entry := range document.Ignore {
		c.ignore = append(c.ignore, lint.Ignore{Rule: entry.Rule, Object: entry.Object, Webhook: entry.Webhook, Reason: entry.Reason})
	}
	c.readLines(text)
	return c, nil
}

func (c *config) readLines(text []byte) {
	var document struct{ Ignore []yaml.Node }
	if err := yaml.Unmarshal(text, &document); err != nil {
		return // readConfig has decoded the same text
	}
	for _, entry := range document.Ignore {
		c.lines = append(c.lines, entry.Line)
	}
}

// lineOf returns the line of an entry, by a path such as "ignore[3]".
func (c *config) lineOf(path string) int {
	var index int
	if _, err := fmt.Sscanf(path, "ignore[%d]", &index); err != nil || index >= len(c.lines) {
		return 1
	}
	return c.lines[index]
}
