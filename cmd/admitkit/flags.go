// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/admitkit/admitkit/internal/problem"
)

// placeholders holds the placeholders, such as FILE, that the help prints for the values of flags. A flag needs no
// entry if its usage has a placeholder in backquotes, or if the function placeholder can derive one from the flag's
// type or name. A key is the name of a flag, or the names of a command and a flag.
var placeholders = map[string]string{
	"advertise":                     "HOST[:PORT]",
	"allow":                         "RIGHT",
	"traffic":                       "FILE|DIR",
	"apply":                         "FILE|DIR",
	"certs":                         "SOURCE",
	"color":                         "WHEN",
	"expect-called":                 "WEBHOOK",
	"expect-not-called":             "WEBHOOK",
	"explain":                       "RULE",
	"fail-on":                       "SEVERITY",
	"filename":                      "FILE|DIR",
	"flag":                          "NAME=VALUE",
	"hook":                          "PACKAGE",
	"ignore":                        "CHECK",
	"kubernetes":                    "VERSION",
	"observe":                       "COMMAND",
	"output":                        "FORMAT",
	"probe":                         "[WEBHOOK=]HOST:PORT",
	"server-dir":                    "DIR",
	"serving-cert":                  "[WEBHOOK=]FILE",
	"user-extra":                    "KEY=VALUE",
	"without":                       "LAW",
	"explain webhook-configuration": "FILE|DIR",
	"explain against":               "FILE|DIR",
	"record output":                 "DIR",
}

// nameFlagValues makes the help of a command and its subcommands print a placeholder, such as FILE, for the value of
// each flag, instead of a Go type.
func nameFlagValues(c *cobra.Command, flags *pflag.FlagSet) {
	flags.VisitAll(func(f *pflag.Flag) {
		name, _ := pflag.UnquoteUsage(f)
		if name == "" || name == strings.ToUpper(name) { // a boolean flag, or the usage has the word
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
		nameFlagValues(sub, sub.LocalNonPersistentFlags())
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

// A namedValue is the value of a flag, with the placeholder that the help prints for it.
type namedValue struct {
	pflag.Value
	name string
}

func (v *namedValue) Type() string { return v.name }

// A namedList is a namedValue for a flag that can be repeated.
type namedList struct {
	*namedValue
	pflag.SliceValue
}

// flagError adds hints to an error about flags: names similar to an unknown one, and the command's help.
func flagError(c *cobra.Command, err error) error {
	p := problem.New("%w", err)
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) && len(unknown.GetSpecifiedName()) > 1 {
		near := &cobra.Command{SuggestionsMinimumDistance: 2} // cobra suggests only commands, so add a command for each flag
		c.Flags().VisitAll(func(f *pflag.Flag) {
			near.AddCommand(&cobra.Command{Use: f.Name, Run: func(*cobra.Command, []string) {}})
		})
		for _, name := range near.SuggestionsFor(unknown.GetSpecifiedName()) {
			p = p.Hint("did you mean --%s?", name)
		}
	}
	return p.Hint("%s --help", c.CommandPath())
}
