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

// The sources of a project's certificates.
const (
	SelfManaged = "self-managed"
	CertManager = "cert-manager"
)

// projectFile stores the name, domain and certificate source of a project, for Add.
const projectFile = ".admitkit.yaml"

// A Project is a project that "admitkit init" generates, as data for the templates.
type Project struct {
	Name   string `json:"name"`
	Domain string `json:"domain"`
	Certs  string `json:"certs"`

	// PriorityClass is the priority class of the Pods, or empty. Only for new projects.
	PriorityClass string `json:"-"`

	Module string  `json:"-"`
	Hooks  []*Hook `json:"-"`
	source `json:"-"`
}

// SelfManaged reports whether the program generates its own certificates.
func (p *Project) SelfManaged() bool { return p.Certs == SelfManaged }

// CriticalPriority reports whether the priority class begins with "system-". An API server may allow such a class only
// in namespaces with a quota for the class.
func (p *Project) CriticalPriority() bool { return strings.HasPrefix(p.PriorityClass, "system-") }

var modulePath = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._~-]*(/[A-Za-z0-9._~-]+)*$`)

func (p *Project) check() error {
	switch {
	case len(validation.IsDNS1035Label(p.Name)) > 0:
		return problem.New("%q is not a valid name: use lower-case letters, digits and dashes, and begin with a letter", p.Name).Hint("admitkit init shop-webhooks")
	case len(p.Name) > 50: // names of Secrets and other objects add a suffix
		return problem.New("%q is too long: a name has at most 50 characters", p.Name)
	case p.Name == "default" || strings.HasPrefix(p.Name, "kube-"):
		return problem.New("%q cannot be the name: the project gets its own namespace with this name, and Kubernetes uses this namespace", p.Name).Hint("admitkit init shop-webhooks")
	case !modulePath.MatchString(p.Module):
		return problem.New("--module: %q is not a module path", p.Module).Hint("--module example.com/%s", p.Name)
	case p.Module == admitkitModule || strings.HasPrefix(p.Module, admitkitModule+"/"):
		return problem.New("--module: %s belongs to admitkit", p.Module).Hint("--module example.com/%s", p.Name)
	case p.Certs != SelfManaged && p.Certs != CertManager:
		return problem.New("--certs: %q is neither %s nor %s", p.Certs, SelfManaged, CertManager)
	case p.PriorityClass != "" && len(validation.IsDNS1123Subdomain(p.PriorityClass)) > 0:
		return problem.New("--priority-class: %q is not a valid name of a PriorityClass", p.PriorityClass).Hint("--priority-class system-cluster-critical")
	case len(validation.IsDNS1123Subdomain(p.Domain)) > 0 || !strings.Contains(p.Domain, "."):
		return problem.New("--domain: %q is not a domain name", p.Domain).Hint("--domain example.com")
	}
	return nil
}

// domainOf returns the domain of a module path, or example.com if the domain is a code hosting site or invalid.
func domainOf(module string) string {
	host, _, _ := strings.Cut(module, "/")
	if slices.Contains([]string{"github.com", "gitlab.com", "bitbucket.org", "codeberg.org"}, host) ||
		!strings.Contains(host, ".") || len(validation.IsDNS1123Subdomain(host)) > 0 {
		return "example.com"
	}
	return host
}

// Load returns the project that contains the folder, and its root.
func Load(dir string) (*Project, string, error) {
	p, root, err := search(dir)
	if err == nil && p == nil {
		err = problem.New("%s is not in a project that \"admitkit init\" generated: neither it nor a parent folder has %s", dir, projectFile).
			Hint("admitkit init NAME --mutate pods  # creates a project")
	}
	return p, root, err
}

// Of returns the project that contains the folder, or nil.
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
