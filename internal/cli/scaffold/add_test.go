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
			name, flag := result.Project.generatedManifest()
			text, err := os.ReadFile("shop/" + name)
			if err != nil {
				t.Fatal(err)
			}
			edited := string(text) + "---\n# mine\n"
			write(t, "shop/"+name, edited)
			result, err = Add(t.Context(), Options{Dir: "shop", Validate: []string{"pods"}, SkipTidy: true})
			if err != nil {
				t.Fatal(err)
			}
			if now, _ := os.ReadFile("shop/" + name); string(now) != edited {
				t.Errorf("%s was changed:\n%s", name, now)
			}
			want := "you have edited " + name + ", so it was not changed: add the output of go run . " + flag
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
