// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// These variables define the shell completion of flags by name. fixedFlags maps a flag to its values. The other
// variables list the flags whose values are YAML files, files of any kind, or folders. A flag name has the same meaning
// in all commands. A command that needs another completion registers it itself.
var (
	fixedFlags = map[string][]string{
		"color":      {"auto", "always", "never"},
		"operation":  {"CREATE", "UPDATE", "DELETE", "CONNECT"},
		"kubernetes": {"1.36"},
	}
	yamlFlags = []string{"filename", "webhook-configuration", "exceptions", "chain", "old", "apply", "config"}
	fileFlags = []string{"ca-file", "client-cert", "client-key", "token-file", "kubeconfig", "replay", "audit-log", "serving-cert", "tls-cert", "tls-key", "key-file"}
	dirFlags  = []string{"dir", "store", "hook", "admitkit"}
)

// registerCompletions adds shell completions for flags and arguments that have none yet. Without a registration, a
// shell would offer file names.
func registerCompletions(c *cobra.Command, flags *pflag.FlagSet) {
	nothing := cobra.FixedCompletions(nil, cobra.ShellCompDirectiveNoFileComp)
	isFile := map[string]bool{}
	for _, name := range append(yamlFlags, fileFlags...) {
		isFile[name] = true
	}
	for _, name := range yamlFlags {
		_ = c.MarkFlagFilename(name, "yaml", "yml", "json") // fails if the command has no such flag
	}
	for _, name := range dirFlags {
		_ = c.MarkFlagDirname(name)
		isFile[name] = true
	}
	flags.VisitAll(func(f *pflag.Flag) {
		if _, known := c.GetFlagCompletionFunc(f.Name); known || isFile[f.Name] || f.NoOptDefVal != "" {
			return
		}
		if values := fixedFlags[f.Name]; values != nil {
			_ = c.RegisterFlagCompletionFunc(f.Name, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
			return
		}
		_ = c.RegisterFlagCompletionFunc(f.Name, nothing)
	})
	if c.ValidArgsFunction == nil && len(c.ValidArgs) == 0 && !takesFiles[c.CommandPath()] && !c.HasSubCommands() {
		c.ValidArgsFunction = nothing
	}
	for _, sub := range c.Commands() {
		registerCompletions(sub, sub.LocalNonPersistentFlags())
	}
}

// takesFiles lists the commands with arguments that are files, folders or command lines.
var takesFiles = map[string]bool{
	"admitkit dev":             true,
	"admitkit manifests":       true,
	"admitkit lint":            true,
	"admitkit audit":           true,
	"admitkit apiserver start": true,
}
