// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/admitkit/admitkit/internal/cli/screen"
)

const docsFolder = "../../docs/cli"

// TestDocs compares docs/cli with the help of the commands. To write the pages, run:
//
//	go test ./cmd/admitkit -run TestDocs -update
func TestDocs(t *testing.T) {
	want := map[string]string{"README.md": contents(quietRoot())}
	for _, c := range documented(quietRoot()) {
		want[fileOf(c)] = reference(c)
	}
	if *update {
		if err := os.MkdirAll(docsFolder, 0o755); err != nil {
			t.Fatal(err)
		}
		for name, text := range want {
			if err := os.WriteFile(filepath.Join(docsFolder, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	const how = "run go test ./cmd/admitkit -run TestDocs -update"
	for name, text := range want {
		if got, err := os.ReadFile(filepath.Join(docsFolder, name)); err != nil || string(got) != text {
			t.Errorf("docs/cli/%s differs from the help of the command: %s", name, how)
		}
	}
	files, err := os.ReadDir(docsFolder)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if _, known := want[f.Name()]; !known {
			t.Errorf("docs/cli/%s belongs to no command: remove it", f.Name())
		}
	}
}

// TestHelpIsComplete checks that every command has a long description and examples, and that every flag has a usage.
func TestHelpIsComplete(t *testing.T) {
	for _, c := range documented(quietRoot()) {
		if c.Long == "" && c.Name() != "version" {
			t.Errorf("%s: no long text", c.CommandPath())
		}
		if c.Example == "" && !c.HasSubCommands() {
			t.Errorf("%s: no examples", c.CommandPath())
		}
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.Usage == "" || strings.HasSuffix(f.Usage, ".") {
				t.Errorf("%s --%s: the usage is %q, want a phrase without a full stop", c.CommandPath(), f.Name, f.Usage)
			}
			if name, _ := pflag.UnquoteUsage(f); name != strings.ToUpper(name) {
				t.Errorf("%s --%s: help prints the Go type %s for its value, want a word in capitals", c.CommandPath(), f.Name, name)
			}
		})
	}
}

func quietRoot() *cobra.Command {
	root := newRoot(&screen.Screen{In: strings.NewReader(""), Out: &bytes.Buffer{}, Err: &bytes.Buffer{}, Getenv: func(string) string { return "" }})
	root.InitDefaultHelpCmd()
	return root
}

// documented returns c and its subcommands that have a page in docs/cli, parents first.
func documented(c *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{c}
	for _, sub := range c.Commands() {
		if !sub.Hidden && sub.Name() != "help" && sub.Name() != "completion" {
			all = append(all, documented(sub)...)
		}
	}
	return all
}

func fileOf(c *cobra.Command) string {
	return strings.ReplaceAll(c.CommandPath(), " ", "-") + ".md"
}

// contents returns the text of docs/cli/README.md: the commands, under one heading for each task.
func contents(root *cobra.Command) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# The command line\n\n%s. The flags of all commands and the exit codes are on the page\n[%s](%s).\n", root.Short, root.CommandPath(), fileOf(root))
	for _, group := range root.Groups() {
		fmt.Fprintf(&b, "\n## %s\n\n| Command | Use |\n|---|---|\n", strings.TrimSuffix(group.Title, ":"))
		for _, top := range root.Commands() {
			if top.GroupID != group.ID || top.Name() == "help" || top.Name() == "completion" {
				continue
			}
			for _, c := range documented(top) {
				fmt.Fprintf(&b, "| [%s](%s) | %s |\n", c.CommandPath(), fileOf(c), strings.ReplaceAll(c.Short, "|", `\|`))
			}
		}
	}
	b.WriteString(`
Your shell can complete commands, flags and file names. ` + "`admitkit completion bash --help`" + ` explains how to install
the completion; zsh, fish and powershell work too.

These pages are generated from the help of the commands: ` + "`go test ./cmd/admitkit -run TestDocs -update`" + `.
`)
	return b.String()
}

// reference returns the text of a command's page.
func reference(c *cobra.Command) string {
	var b strings.Builder
	long := c.Long
	if long == "" {
		long = c.Short + "."
	}
	fmt.Fprintf(&b, "# %s\n\n%s\n\n", c.CommandPath(), c.Short+".")
	use := c.UseLine()
	if c.HasSubCommands() {
		use = c.CommandPath() + " [command]"
	}
	fence(&b, use)
	if long != c.Short+"." {
		b.WriteString("## Description\n\n")
		fence(&b, long)
	}
	if c.Example != "" {
		b.WriteString("## Examples\n\n")
		fence(&b, strings.ReplaceAll(strings.TrimPrefix(c.Example, "  "), "\n  ", "\n"))
	}
	flags(&b, "Flags", c.LocalNonPersistentFlags())
	flags(&b, "Flags of this command and its subcommands", c.PersistentFlags())
	var below []string
	for _, sub := range c.Commands() {
		if !sub.Hidden && sub.Name() != "help" && sub.Name() != "completion" {
			below = append(below, fmt.Sprintf("- [%s](%s): %s\n", sub.CommandPath(), fileOf(sub), sub.Short))
		}
	}
	if len(below) > 0 {
		b.WriteString("## Commands\n\n" + strings.Join(below, "") + "\n")
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

func flags(b *strings.Builder, title string, set *pflag.FlagSet) {
	if text := set.FlagUsagesWrapped(100); strings.TrimSpace(text) != "" {
		b.WriteString("## " + title + "\n\n")
		fence(b, strings.TrimRight(text, "\n"))
	}
}

func fence(b *strings.Builder, text string) {
	fmt.Fprintf(b, "```text\n%s\n```\n\n", strings.TrimRight(text, "\n"))
}
