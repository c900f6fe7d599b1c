// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"os"
	"strings"
	"testing"
)

// TestEditedManifests checks that Add keeps the user's changes of generated manifests.
func TestEditedManifests(t *testing.T) {
	for _, certs := range []string{SelfManaged, CertManager} {
		t.Run(certs, func(t *testing.T) {
			t.Chdir(t.TempDir())
			o := Options{Name: "shop", Certs: certs, Mutate: []string{"pods"}, SkipTidy: true}
			result, err := Init(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			m := result.Project.Manifests()[0]
			name, flags := m.File, strings.Join(m.Args, " ")
			text, err := os.ReadFile("shop/" + name)
			if err != nil {
				t.Fatal(err)
			}
			edited := strings.Replace(string(text), "---\n", "---\n# mine\n", 1)
			write(t, "shop/"+name, edited)
			result, err = Add(t.Context(), Options{Dir: "shop", Validate: []string{"pods"}, SkipTidy: true})
			if err != nil {
				t.Fatal(err)
			}
			if now, _ := os.ReadFile("shop/" + name); string(now) != edited {
				t.Errorf("%s was changed:\n%s", name, now)
			}
			want := "you have edited the generated block of " + name + ", so it was not changed: add the output of go run . " + flags
			if notes := strings.Join(result.Notes, "\n"); !strings.Contains(notes, want) {
				t.Errorf("there is no %q in %q", want, notes)
			}
			if list, _ := os.ReadFile("shop/" + hooksFile); !strings.Contains(string(list), "PodValidator()") {
				t.Errorf("the hook is not in the list:\n%s", list)
			}
		})
	}
}

// TestFunctionsBesideTheList checks that a constructor outside the list does not count as an edit of the list.
func TestFunctionsBesideTheList(t *testing.T) {
	t.Chdir(t.TempDir())
	newProject(t)
	write(t, "shop/hooks/helper.go", "package hooks\n\nimport \"github.com/admitkit/admitkit/pkg/webhook\"\n\nfunc withLimits() *webhook.Hook { return PodMutator() }\n\nvar _ = withLimits\n")
	result, err := Add(t.Context(), Options{Dir: "shop", Validate: []string{"pods"}, SkipTidy: true})
	if err != nil {
		t.Fatal(err)
	}
	list, err := os.ReadFile("shop/" + hooksFile)
	if err != nil || !strings.Contains(string(list), "{\n\t\tPodMutator(),\n\t\tPodValidator(),\n\t}") {
		t.Errorf("%v\n%s", err, list)
	}
	if notes := strings.Join(result.Notes, "\n"); !strings.Contains(notes, "hooks/hooks.go does not list withLimits()") {
		t.Errorf("the notes do not name the function: %q", notes)
	}
}

// TestListLast checks that Add writes hooks/hooks.go last, so that the program still works if Add is killed.
func TestListLast(t *testing.T) {
	t.Chdir(t.TempDir())
	newProject(t)
	before, err := os.ReadFile("shop/" + hooksFile)
	if err != nil {
		t.Fatal(err)
	}
	_, err = Add(t.Context(), Options{Dir: "shop", Validate: []string{"pods"}, SkipTidy: true, Progress: func(what string) {
		if now, err := os.ReadFile("shop/" + hooksFile); err != nil || string(now) != string(before) {
			t.Errorf("%s: %v\n%s", what, err, now)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
}

// TestTextAroundGeneratedBlocks checks that Add changes only the generated block of a manifest.
func TestTextAroundGeneratedBlocks(t *testing.T) {
	t.Chdir(t.TempDir())
	newProject(t)
	const name = "shop/config/webhooks/webhooks.yaml"
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	write(t, name, "# before\n"+string(text)+"---\n# after\n")
	if _, err := Add(t.Context(), Options{Dir: "shop", Validate: []string{"secrets"}, SkipTidy: true}); err != nil {
		t.Fatal(err)
	}
	now, err := os.ReadFile(name)
	if got := string(now); err != nil || !strings.HasPrefix(got, "# before\n") || !strings.HasSuffix(got, "---\n# after\n") || !strings.Contains(got, "validate-secrets.shop") {
		t.Errorf("%v\n%s", err, now)
	}
}

// TestListWithDependencies checks that Add extends a list of hooks that the user has changed.
func TestListWithDependencies(t *testing.T) {
	rows := []struct{ name, text, want string }{
		{"arguments", "package hooks\n\nfunc Hooks() ([]*Hook, error) {\n\tx, err := f()\n\treturn []*Hook{\n\t\tA(x), // mine\n\t}, err\n}\n",
			"package hooks\n\nfunc Hooks() ([]*Hook, error) {\n\tx, err := f()\n\treturn []*Hook{\n\t\tA(x), // mine\n\t\tB(),\n\t}, err\n}\n"},
		{"one line", "package hooks\n\nfunc Hooks() []*Hook { return []*Hook{A()} }\n", ""},
		{"a variable", "package hooks\n\nfunc Hooks() []*Hook {\n\treturn all\n}\n", ""},
		{"no such function", "package hooks\n", ""},
		{"not Go", "package\n", ""},
	}
	for _, row := range rows {
		if got := string(extendList([]byte(row.text), []string{"B"})); got != row.want {
			t.Errorf("%s: got\n%s", row.name, got)
		}
	}
}
