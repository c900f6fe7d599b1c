// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/admitkit/admitkit/internal/cli/problem"
)

// placeholders are what help says in place of the values of flags, where that is neither told by the usage, in
// backquotes, nor the last word of the flag's name.
var placeholders = map[string]string{
	"advertise":                     "HOST[:PORT]",
	"allow":                         "RIGHT",
	"apply":                         "FILE|DIR",
	"certs":                         "WHO",
	"color":                         "WHEN",
	"expect-called":                 "WEBHOOK",
	"expect-not-called":             "WEBHOOK",
	"explain":                       "RULE",
	"fail-on":                       "SEVERITY",
	"filename":                      "FILE|DIR",
	"flag":                          "NAME=VALUE",
	"hook":                          "PACKAGE",
	"kubernetes":                    "VERSION",
	"observe":                       "COMMAND",
	"output":                        "FORM",
	"probe":                         "[WEBHOOK=]HOST:PORT",
	"server-dir":                    "DIR",
	"serving-cert":                  "[WEBHOOK=]FILE",
	"user-extra":                    "KEY=VALUE",
	"without":                       "LAW",
	"explain webhook-configuration": "FILE|DIR",
}

// named has the help of all commands name the values of flags in words, and not by Go's types.
func named(c *cobra.Command, flags *pflag.FlagSet) {
	flags.VisitAll(func(f *pflag.Flag) {
		name, _ := pflag.UnquoteUsage(f)
		if name == "" || name == strings.ToUpper(name) { // takes no value, or one that has a name
			return
		}
		shown := &namedValue{Value: f.Value, name: placeholder(c.Name(), f)}
		f.Value = shown
		if list, ok := shown.Value.(pflag.SliceValue); ok {
			f.Value = &namedList{namedValue: shown, SliceValue: list}
		}
		if f.DefValue == "[]" {
			f.DefValue = ""
		}
	})
	for _, sub := range c.Commands() {
		named(sub, sub.LocalNonPersistentFlags())
	}
}

func placeholder(command string, f *pflag.Flag) string {
	switch kind := f.Value.Type(); {
	case placeholders[command+" "+f.Name] != "":
		return placeholders[command+" "+f.Name]
	case placeholders[f.Name] != "":
		return placeholders[f.Name]
	case kind == "duration":
		return "DURATION"
	case strings.HasPrefix(kind, "int"):
		return "N"
	case slices.Contains(dirFlags, f.Name):
		return "DIR"
	case slices.Contains(yamlFlags, f.Name), slices.Contains(fileFlags, f.Name):
		return "FILE"
	}
	return strings.ToUpper(f.Name[strings.LastIndex(f.Name, "-")+1:])
}

// A namedValue is a value with a name for help.
type namedValue struct {
	pflag.Value
	name string
}

func (v *namedValue) Type() string { return v.name }

// A namedList is that of a flag that may be repeated.
type namedList struct {
	*namedValue
	pflag.SliceValue
}

// flagError tells of flags that are nearly right, too.
func flagError(c *cobra.Command, err error) error {
	p := problem.New("%w", err)
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) && len(unknown.GetSpecifiedName()) > 1 {
		near := &cobra.Command{SuggestionsMinimumDistance: 2} // cobra compares names of commands only
		c.Flags().VisitAll(func(f *pflag.Flag) {
			near.AddCommand(&cobra.Command{Use: f.Name, Run: func(*cobra.Command, []string) {}})
		})
		for _, name := range near.SuggestionsFor(unknown.GetSpecifiedName()) {
			p = p.Hint("did you mean --%s?", name)
		}
	}
	return p.Hint("%s --help", c.CommandPath())
}
