// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/admitkit/admitkit/pkg/idempotence"
)

// inModule begins the name of a file that the project's own module has.
const inModule = "module:"

// budget is long enough for each webhook on a busy machine: the findings must not depend on the machine.
const budget = "1h"

// A project is one version of a published project, described by a file project.yaml.
type project struct {
	// Module is the path of the project's module. Its version is in the go.mod of the folder.
	Module   string    `json:"module"`
	Webhooks []webhook `json:"webhooks"`
	// Before is the folder of an older version, with the defect that this version mended.
	Before string `json:"before,omitempty"`

	name       string // of the folder
	dir        string
	version    string
	moduleDir  string // in the module cache
	judgements []*judgement
}

// A webhook is one mutating webhook of a project.
type webhook struct {
	// Name is the name in the configuration.
	Name string `json:"name"`
	// Path is the path of the URL.
	Path string `json:"path"`
	// Configuration is a file with a MutatingWebhookConfiguration: in the folder, or after "module:" in the project's
	// module.
	Configuration string `json:"configuration"`
	// Files are samples, definitions and Namespaces, named in the same way.
	Files []string `json:"files"`
}

// readProjects reads the project of each folder that has one.
func readProjects(dir string) ([]*project, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*", "project.yaml"))
	if err != nil {
		return nil, err
	}
	var all []*project
	for _, file := range files {
		p := &project{dir: filepath.Dir(file), name: filepath.Base(filepath.Dir(file))}
		if err := readYAML(file, p); err != nil {
			return nil, err
		}
		if err := readYAML(filepath.Join(p.dir, "judgement.yaml"), &p.judgements); err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

func readYAML(file string, into any) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if err := yaml.UnmarshalStrict(text, into); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}

// test serves the webhooks of the project and runs the harness on each.
func (p *project) test(ctx context.Context, admitkit, cache string) ([]*row, error) {
	program, err := build(ctx, p.dir, filepath.Join(cache, p.name), ".")
	if err != nil {
		return nil, err
	}
	// The build downloads the module. Before that, it has no folder.
	listed, err := output(ctx, p.dir, "go", "list", "-m", "-f", "{{.Version}} {{.Dir}}", p.Module)
	if err != nil {
		return nil, err
	}
	p.version, p.moduleDir, _ = strings.Cut(strings.TrimSpace(listed), " ")
	url, stop, err := serve(ctx, program, filepath.Join(cache, p.name+".log"))
	if err != nil {
		return nil, err
	}
	defer stop()
	var rows []*row
	for i, w := range p.Webhooks {
		r := &row{project: p, webhook: w.Name}
		if r.report, err = p.verify(ctx, admitkit, url, w, filepath.Join(cache, fmt.Sprintf("%s-%d", p.name, i))); err != nil {
			return nil, fmt.Errorf("%s: %w", w.Name, err)
		}
		r.judge(p.judgements)
		rows = append(rows, r)
	}
	return rows, nil
}

// verify runs the command line tool on a webhook. It writes the reports for people and for this program.
func (p *project) verify(ctx context.Context, admitkit, url string, w webhook, report string) (*idempotence.Report, error) {
	arguments := []string{"verify", "--in-process", "--budget", budget, "--url", url + w.Path, "--webhook", w.Name,
		"--webhook-configuration", p.file(w.Configuration), "-o", "text=" + report + ".txt", "-o", "json=" + report + ".json"}
	for _, file := range w.Files {
		arguments = append(arguments, "-f", p.file(file))
	}
	command := exec.CommandContext(ctx, admitkit, arguments...)
	said, err := command.CombinedOutput()
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) {
		return nil, err
	}
	text, err := os.ReadFile(report + ".json")
	if err != nil {
		return nil, fmt.Errorf("%w\n%s", err, said)
	}
	var result idempotence.Report
	return &result, json.Unmarshal(text, &result) // a YAML decoder refuses some characters that JSON texts may have
}

// file returns the path of a file that project.yaml names.
func (p *project) file(name string) string {
	if rest, ok := strings.CutPrefix(name, inModule); ok {
		return filepath.Join(p.moduleDir, rest)
	}
	return filepath.Join(p.dir, name)
}

// build compiles a program of the module in dir into a file, and returns the file's path.
func build(ctx context.Context, dir, file, target string) (string, error) {
	file, err := filepath.Abs(file)
	if err != nil {
		return "", err
	}
	_, err = output(ctx, dir, "go", "build", "-ldflags=-s -w", "-o", file, target)
	return file, err
}

// output runs a command in dir and returns what it prints.
func output(ctx context.Context, dir, name string, arguments ...string) (string, error) {
	command := exec.CommandContext(ctx, name, arguments...)
	command.Dir, command.Env = dir, append(os.Environ(), "GOWORK=off")
	out, err := command.Output()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		return "", fmt.Errorf("%s: %w\n%s", command, err, failed.Stderr)
	}
	return string(out), err
}

// serve starts a program and returns the address that it prints, and a function that ends the program. What the program
// logs goes to a file.
func serve(ctx context.Context, program, logFile string) (url string, stop func(), err error) {
	logged, err := os.Create(logFile)
	if err != nil {
		return "", nil, err
	}
	command := exec.CommandContext(ctx, program)
	command.Stderr = logged
	out, err := command.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	if err := command.Start(); err != nil {
		return "", nil, err
	}
	stop = func() {
		_ = command.Process.Kill() // it ended already
		_ = command.Wait()         // it was killed
		_ = logged.Close()         // nothing depends on the log
	}
	reader := bufio.NewReader(out)
	if url, err = reader.ReadString('\n'); err != nil {
		stop()
		return "", nil, fmt.Errorf("%s printed no address: see %s", program, logFile)
	}
	go func() { _, _ = io.Copy(logged, reader) }() // some projects log to standard output
	return strings.TrimSpace(url), stop, nil
}
