// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"os"
	"strings"
	"testing"
)

// TestEditedManifests: what somebody wrote into a file that the program prints is not lost.
func TestEditedManifests(t *testing.T) {
	for _, certs := range []string{SelfManaged, CertManager} {
		t.Run(certs, func(t *testing.T) {
			t.Chdir(t.TempDir())
			o := Options{Name: "shop", Certs: certs, Mutate: []string{"pods"}, SkipTidy: true}
			result, err := Init(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			name, flag := result.Project.printed()
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
			want := name + " is not what the program printed before, and is left alone: add by hand what go run . " + flag + " prints"
			if notes := strings.Join(result.Notes, "\n"); !strings.Contains(notes, want) {
				t.Errorf("there is no %q in %q", want, notes)
			}
			if list, _ := os.ReadFile("shop/" + hooksFile); !strings.Contains(string(list), "PodValidator()") {
				t.Errorf("the hook is not in the list:\n%s", list)
			}
		})
	}
}

// TestFunctionsBesideTheList: a function that returns a hook and that nobody listed is no edit, and no hook of its own.
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
	if notes := strings.Join(result.Notes, "\n"); !strings.Contains(notes, "hooks/hooks.go does not have withLimits(), which is left so") {
		t.Errorf("it is not named in %q", notes)
	}
}

// TestListLast: as long as the list is not written the program is as it was, should we be killed.
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
