// SPDX-License-Identifier: Apache-2.0

// Command realworld runs the harness on published webhooks, as their projects ship them. Each folder beside it serves
// one version of a project. The command compares the findings with our judgement of each and prints a table.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
)

func main() {
	cache := flag.String("cache", ".cache/realworld", "folder for the built programs and the reports")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, "hack/realworld", *cache, flag.Args())
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "realworld:", err)
		os.Exit(1)
	}
}

// run tests the projects with the given folder names, or all of them, and prints the table. It fails if a finding was
// not judged, or if a judgement has no finding.
func run(ctx context.Context, dir, cache string, names []string) error {
	projects, err := readProjects(dir)
	if err != nil {
		return err
	}
	if len(names) > 0 {
		projects = slices.DeleteFunc(projects, func(p *project) bool { return !slices.Contains(names, p.name) })
	}
	admitkit, err := build(ctx, ".", filepath.Join(cache, "admitkit"), "./cmd/admitkit")
	if err != nil {
		return err
	}
	var rows []*row
	for _, p := range projects {
		fmt.Fprintf(os.Stderr, "realworld: %s\n", p.name)
		of, err := p.test(ctx, admitkit, cache)
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		rows = append(rows, of...)
	}
	return show(os.Stdout, projects, rows)
}
