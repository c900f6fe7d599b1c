// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"github.com/admitkit/admitkit/internal/problem"
)

// How a project gets its certificates.
const (
	SelfManaged = "self-managed"
	CertManager = "cert-manager"
)

// projectFile remembers what Add needs to know.
const projectFile = ".admitkit.yaml"

// A Project is what the templates are filled in with.
type Project struct {
	Name   string `json:"name"`
	Domain string `json:"domain"`
	Certs  string `json:"certs"`

	Module string  `json:"-"`
	Hooks  []*Hook `json:"-"`
	source `json:"-"`
}

// SelfManaged tells whether the program makes its certificates.
func (p *Project) SelfManaged() bool { return p.Certs == SelfManaged }

var modulePath = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._~-]*(/[A-Za-z0-9._~-]+)*$`)

func (p *Project) check() error {
	name := "a name of a Service: lower-case letters, digits and dashes, a letter first"
	switch {
	case len(validation.IsDNS1035Label(p.Name)) > 0:
		return problem.New("%q is not %s", p.Name, name).Hint("admitkit init shop-webhooks")
	case len(p.Name) > 50: // the marker of the installation, and the Secret, add to it
		return problem.New("%q is too long for the names that are made of it: 50 letters at most", p.Name)
	case p.Name == "default" || strings.HasPrefix(p.Name, "kube-"):
		return problem.New("%q is a namespace of Kubernetes, and the project would be deployed into the one of its name", p.Name).Hint("admitkit init shop-webhooks")
	case !modulePath.MatchString(p.Module):
		return problem.New("--module: %q is no module path", p.Module).Hint("--module example.com/%s", p.Name)
	case p.Module == admitkitModule || strings.HasPrefix(p.Module, admitkitModule+"/"):
		return problem.New("--module: %s is admitkit's own", p.Module).Hint("--module example.com/%s", p.Name)
	case p.Certs != SelfManaged && p.Certs != CertManager:
		return problem.New("--certs: %q is neither %s nor %s", p.Certs, SelfManaged, CertManager)
	case len(validation.IsDNS1123Subdomain(p.Domain)) > 0 || !strings.Contains(p.Domain, "."):
		return problem.New("--domain: %q is no domain name", p.Domain).Hint("--domain example.com")
	}
	return nil
}

// domainOf is the domain of a module, unless that is one of code hosting.
func domainOf(module string) string {
	host, _, _ := strings.Cut(module, "/")
	if slices.Contains([]string{"github.com", "gitlab.com", "bitbucket.org", "codeberg.org"}, host) ||
		!strings.Contains(host, ".") || len(validation.IsDNS1123Subdomain(host)) > 0 {
		return "example.com"
	}
	return host
}

// load reads the project that the folder is in, and returns its root.
func load(dir string) (*Project, string, error) {
	p, root, err := search(dir)
	if err == nil && p == nil {
		err = problem.New("%s is in no project of admitkit: there is no %s in it or above", dir, projectFile).
			Hint("admitkit init NAME --mutate pods  # makes one")
	}
	return p, root, err
}

// Of returns the project that the folder is in, or nil.
func Of(dir string) (*Project, error) {
	p, _, err := search(dir)
	return p, err
}

func search(dir string) (*Project, string, error) {
	root, err := filepath.Abs(dir)
	if err != nil {
		return nil, "", problem.New("%w", err)
	}
	for {
		text, err := os.ReadFile(filepath.Join(root, projectFile))
		switch {
		case err == nil:
			p, err := read(root, text)
			return p, root, err
		case !errors.Is(err, fs.ErrNotExist):
			return nil, "", problem.New("%w", err)
		case filepath.Dir(root) == root:
			return nil, "", nil
		}
		root = filepath.Dir(root)
	}
}

func read(root string, text []byte) (*Project, error) {
	p := &Project{}
	name := filepath.Join(root, projectFile)
	if err := yaml.UnmarshalStrict(text, p); err != nil {
		return nil, problem.New("%s: %w", name, err)
	}
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		return nil, problem.New("%w", err)
	}
	if found := moduleLine.FindSubmatch(mod); found != nil {
		p.Module = string(found[1])
	}
	if err := p.check(); err != nil {
		return nil, problem.New("%s: %w", name, err)
	}
	return p, nil
}

var moduleLine = regexp.MustCompile(`(?m)^module\s+"?([^\s"]+)"?`)
