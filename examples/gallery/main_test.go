// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// run runs the program with arguments that make it exit without starting a server. It returns the standard output and
// the error message.
func run(t *testing.T, args ...string) (output, message string) {
	t.Helper()
	t.Setenv("KUBECONFIG", "")
	var stdout, stderr bytes.Buffer
	if err := newProgram().Run(t.Context(), args, &stdout, &stderr); err != nil {
		message = err.Error()
	}
	return stdout.String(), message
}

func write(t *testing.T, content string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "configuration.yaml")
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// required maps each admission controller that needs a configuration file to the content of one.
func required(t *testing.T) map[string]string {
	t.Helper()
	kubeconfig := write(t, "{apiVersion: v1, kind: Config, clusters: [{name: a, cluster: {server: 'https://a'}}], contexts: [{name: a, context: {cluster: a}}], current-context: a}")
	return map[string]string{
		"EventRateLimit":     "apiVersion: eventratelimit.admission.k8s.io/v1alpha1\nkind: Configuration\nlimits: [{type: Server, qps: 1, burst: 1}]\n",
		"ImagePolicyWebhook": "imagePolicy: {kubeConfigFile: " + kubeconfig + "}",
		"PodPreset":          "[]",
		"SidecarInjection":   "image: a",
	}
}

func TestEveryControllerHasHooks(t *testing.T) {
	configurations := required(t)
	for name := range policies {
		args := []string{"--print-configuration", "--enable=" + name}
		if content, ok := configurations[name]; ok {
			if _, message := run(t, args...); !strings.Contains(message, name+": this admission controller needs a configuration: add --config="+name+"=FILE") {
				t.Errorf("%s: got %q", name, message)
			}
			args = append(args, "--config="+name+"="+write(t, content))
		}
		output, message := run(t, args...)
		if want := "." + strings.ToLower(name) + ".example.com"; message != "" || !strings.Contains(strings.ReplaceAll(output, "name: ", "."), want) {
			t.Errorf("%s: got %q and the configuration\n%s", name, message, output)
		}
	}
}

func TestPermissionsCoverOnlyEnabledControllers(t *testing.T) {
	output, message := run(t, "--print-rbac", "--enable=AlwaysPullImages,PodNodeSelector,PodTolerationRestriction,RuntimeClass")
	if message != "" {
		t.Fatal(message)
	}
	for resource, want := range map[string]bool{"- namespaces": true, "- runtimeclasses": true, "- storageclasses": false, "- priorityclasses": false} {
		if got := strings.Contains(output, resource); got != want {
			t.Errorf("%s: got %v in\n%s", resource, got, output)
		}
	}
}

func TestConfigurationFiles(t *testing.T) {
	_, message := run(t, "--print-configuration", "--enable=PodNodeSelector,PodSecurity,PodTolerationRestriction,WorkloadDefaults",
		"--config=PodNodeSelector="+write(t, "podNodeSelectorPluginConfig: {team-a: env=test}"),
		"--config=PodTolerationRestriction="+write(t, "apiVersion: podtolerationrestriction.admission.k8s.io/v1alpha1\nkind: Configuration\n"),
		"--config=PodSecurity="+write(t, "apiVersion: pod-security.admission.config.k8s.io/v1\nkind: PodSecurityConfiguration\n"),
		"--config=WorkloadDefaults="+write(t, "requests: {cpu: 1}"))
	if message != "" {
		t.Error(message)
	}
}

func TestSpacesAndCommasInEnable(t *testing.T) {
	output, message := run(t, "--print-configuration", "--enable= AlwaysPullImages , Priority,", "--enable=DefaultTolerationSeconds")
	if message != "" {
		t.Fatal(message)
	}
	for _, name := range []string{"set.alwayspullimages", "set.priority", "defaulttolerationseconds"} {
		if !strings.Contains(output, name+".example.com") {
			t.Errorf("%s is not enabled", name)
		}
	}
}

func TestBadFlags(t *testing.T) {
	bad := write(t, "unknown: field")
	rows := []struct {
		args []string
		want string
	}{
		{nil, "nothing to run: set --enable to names such as AlwaysPullImages,PodNodeSelector"},
		{[]string{"--enable=AlwaysPullImage"}, `"AlwaysPullImage" is not in the gallery: did you mean AlwaysPullImages?`},
		{[]string{"--enable=podsecurity"}, `"podsecurity" is not in the gallery: did you mean PodSecurity?`},
		{[]string{"--enable=Nothing"}, `"Nothing" is not in the gallery: choose from AlwaysPullImages, `},
		{[]string{"--enable=ResourceQuota"}, "ResourceQuota is not possible as a webhook: see docs/gallery.md"},
		{[]string{"--enable= , "}, "nothing to run: set --enable"},
		{[]string{"--enable=Priority", "--enable=Priority"}, "Priority is named twice"},
		{[]string{"--enable=Priority,Priority"}, "Priority is named twice"},
		{[]string{"--enable=Priority", "--config=Priority"}, `"Priority" does not have the form NAME=FILE`},
		{[]string{"--enable=Priority", "--config=Priorities=a"}, `"Priorities" is not in the gallery: did you mean Priority?`},
		{[]string{"--enable=PodNodeSelector", "--config=PodNodeSelector=a", "--config=PodNodeSelector=b"}, "PodNodeSelector has two configuration files"},
		{[]string{"--enable=Priority", "--config=PodNodeSelector=a"}, "--config names PodNodeSelector, which is not enabled: add it to --enable"},
		{[]string{"--enable=Priority", "--config=Priority=a"}, "Priority: this admission controller has no configuration: remove its --config"},
		{[]string{"--enable=NamespaceExists", "--config=NamespaceExists=a"}, "NamespaceExists: this admission controller has no configuration: remove its --config"},
		{[]string{"--enable=RuntimeClass", "--config=RuntimeClass=a"}, "RuntimeClass: this admission controller has no configuration: remove its --config"},
		{[]string{"--enable=PodNodeSelector", "--config=PodNodeSelector=" + bad}, bad + ":1: unknown: unknown field: allowed are "},
		{[]string{"--enable=EventRateLimit", "--config=EventRateLimit=" + bad}, bad + ":1: apiVersion: Required value: begin the file with apiVersion: "},
		{[]string{"--enable=ImagePolicyWebhook", "--config=ImagePolicyWebhook=" + bad}, bad + ":1: unknown: unknown field: allowed are "},
		{[]string{"--enable=NodeRestriction", "--config=NodeRestriction=a"}, "NodeRestriction: this admission controller has no configuration"},
		{[]string{"--enable=PodPreset"}, "PodPreset: this admission controller needs a configuration: add --config=PodPreset=FILE"},
		{[]string{"--enable=PodPreset", "--config=PodPreset=" + bad}, bad + ":1: must be a list, not a map"},
		{[]string{"--enable=SidecarInjection", "--config=SidecarInjection=" + bad}, bad + ":1: unknown: unknown field: allowed are "},
		{[]string{"--enable=PodTolerationRestriction", "--config=PodTolerationRestriction=" + bad}, bad + ":1: apiVersion: Required value: begin the file with apiVersion: "},
		{[]string{"--enable=PodSecurity", "--config=PodSecurity=" + bad}, bad + ":1: apiVersion: Required value: begin the file with apiVersion: "},
		{[]string{"--enable=UniqueIngressHosts", "--config=UniqueIngressHosts=a"}, "UniqueIngressHosts: this admission controller has no configuration"},
		{[]string{"--enable=WorkloadDefaults", "--config=WorkloadDefaults=" + bad}, bad + ":1: unknown: unknown field: allowed are "},
	}
	for _, row := range rows {
		if _, message := run(t, append(row.args, "--print-configuration")...); !strings.Contains(message, row.want) {
			t.Errorf("%v: got %q, want %q", row.args, message, row.want)
		}
	}
}
