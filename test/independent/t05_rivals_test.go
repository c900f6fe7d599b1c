// SPDX-License-Identifier: Apache-2.0

package independent

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
)

const t05DaemonSample = `
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: node-agent, namespace: monitoring}
spec:
  selector:
    matchLabels: {app: node-agent}
  template:
    metadata:
      labels: {app: node-agent}
    spec:
      initContainers:
        - name: sysctl
          image: busybox:1.36
          command: [sysctl, -w, vm.max_map_count=262144]
      containers:
        - name: agent
          image: quay.io/prometheus/node-exporter:v1.8.1
`

var _ = add(hookCase{
	Name:    "T05b1-mirror-prefix",
	Summary: "Images of DaemonSets are pulled through the mirror: each that does not start with its host gets it as a prefix.",
	Why:     "Another webhook with a cache of its own does the same. Each takes the result of the other for an image from outside, so the name grows with each call, and no registry has it.",
	Webhook: register("mirror.fjord.example", "apps", "v1", "daemonsets", create, update),
	Samples: []string{t05DaemonSample},
	New: func() http.Handler {
		return editing(func(_ *admissionv1.AdmissionRequest, e *editor) error {
			for _, list := range []string{"initContainers", "containers"} {
				for i, c := range objects(e.get(under(templateSpec, list)...)) {
					if image := str(c["image"]); image != "" && !strings.HasPrefix(image, "mirror.fjord.example/") {
						e.set("mirror.fjord.example/"+image, under(templateSpec, list, index(i), "image")...)
					}
				}
			}
			return nil
		})
	},
	Proof: func(p *prover) string {
		live := p.created(p.object(t05DaemonSample))
		other := copyOf(live)
		container := reach(other, "spec", "template", "spec", "containers", "0").(map[string]any)
		container["image"] = "cache.edge.example/" + str(container["image"])
		out := p.updated(live, other)
		if image := str(reach(out, "spec", "template", "spec", "containers", "0", "image")); strings.Count(image, "mirror.fjord.example/") > 1 {
			return image
		}
		return ""
	},
})

var t05Upstreams = map[string]string{
	"docker.io": "dockerhub", "index.docker.io": "dockerhub", "quay.io": "quay", "ghcr.io": "github", "registry.k8s.io": "kubernetes",
}

// t05Mirrored returns where the mirror has an image, or the image itself if it is from no upstream of the mirror.
func t05Mirrored(image string) string {
	host, rest, found := strings.Cut(image, "/")
	if !found || !strings.ContainsAny(host, ".:") && host != "localhost" {
		host, rest = "docker.io", image
		if !found {
			rest = "library/" + image
		}
	}
	if project, known := t05Upstreams[host]; known && image != "" {
		return "mirror.fjord.example/" + project + "/" + rest
	}
	return image
}

var _ = add(hookCase{
	Name:    "T05c1-mirror-known-upstreams",
	Summary: "Images of DaemonSets from five known hosts are rewritten to the mirror, with docker.io for names without a host. The pods get the secret for the mirror.",
	Why:     "Neither the mirror nor the cache of another team is a known host, so a rewritten image is left alone. The secret is added once.",
	Webhook: register("mirror2.fjord.example", "apps", "v1", "daemonsets", create, update),
	Samples: []string{t05DaemonSample},
	New: func() http.Handler {
		return editing(func(_ *admissionv1.AdmissionRequest, e *editor) error {
			mirrored := false
			for _, list := range []string{"initContainers", "containers"} {
				for i, c := range objects(e.get(under(templateSpec, list)...)) {
					image := t05Mirrored(str(c["image"]))
					if image != str(c["image"]) {
						e.set(image, under(templateSpec, list, index(i), "image")...)
					}
					mirrored = mirrored || strings.HasPrefix(image, "mirror.fjord.example/")
				}
			}
			secrets := under(templateSpec, "imagePullSecrets")
			if mirrored && !slices.Contains(names(e.get(secrets...)), "mirror-pull") {
				e.push(map[string]any{"name": "mirror-pull"}, secrets...)
			}
			return nil
		})
	},
	Proof: func(p *prover) string {
		live := p.created(p.object(t05DaemonSample))
		if got := reach(live, "spec", "template", "spec", "initContainers", "0", "image"); got != "mirror.fjord.example/dockerhub/library/busybox:1.36" {
			return fmt.Sprint(got)
		}
		if out := p.updated(live, p.object(t05DaemonSample)); !same(out, live) {
			return "the author's manifest gives another result"
		}
		other := copyOf(live)
		container := reach(other, "spec", "template", "spec", "containers", "0").(map[string]any)
		container["image"] = "cache.edge.example/" + str(container["image"])
		if out := p.updated(live, other); !same(out, other) {
			return "the image of the cache is changed"
		}
		return ""
	},
})

const t05SecretSample = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: mailer, namespace: crm}
spec:
  replicas: 1
  selector:
    matchLabels: {app: mailer}
  template:
    metadata:
      labels: {app: mailer}
      annotations: {secrets.fjord.example/env: "true"}
    spec:
      containers:
        - name: mailer
          image: registry.fjord.example/crm/mailer:5.5
          command: [/app/mailer]
          args: [--queue=default]
`

const t05Wrapper = "/fjord/bin/env-secrets"

func t05Strings(list any) []string {
	items, _ := list.([]any)
	var out []string
	for _, item := range items {
		out = append(out, str(item))
	}
	return out
}

// t05Tini wraps the command, as the webhook of another team does.
func t05Tini(object map[string]any) map[string]any {
	object = copyOf(object)
	container := reach(object, "spec", "template", "spec", "containers", "0").(map[string]any)
	container["command"] = append([]any{"/sbin/tini", "--"}, container["command"].([]any)...)
	return object
}

func t05WrapProof(p *prover) string {
	live := p.created(p.object(t05SecretSample))
	out := p.updated(live, t05Tini(live))
	command := t05Strings(reach(out, "spec", "template", "spec", "containers", "0", "command"))
	if count(command, t05Wrapper) != 1 {
		return fmt.Sprintf("%q", command)
	}
	return ""
}

var _ = add(hookCase{
	Name:    "T05b2-secret-wrapper-first",
	Summary: "Commands are wrapped by a program that resolves secrets in variables, unless the first word of the command is this program.",
	Why:     "If another webhook wraps the command too, the program is no longer the first word, and the next call wraps the command again. The secrets are resolved twice, and values that look like references are lost.",
	Webhook: register("envsecrets.fjord.example", "apps", "v1", "deployments", create, update),
	Samples: []string{t05SecretSample},
	New: func() http.Handler {
		return editing(func(_ *admissionv1.AdmissionRequest, e *editor) error {
			if str(e.get("spec", "template", "metadata", "annotations", "secrets.fjord.example/env")) != "true" {
				return nil
			}
			for i, c := range objects(e.get(under(templateSpec, "containers")...)) {
				command := t05Strings(c["command"])
				if len(command) == 0 || command[0] == t05Wrapper {
					continue
				}
				e.set(append([]string{t05Wrapper, "--"}, command...), under(templateSpec, "containers", index(i), "command")...)
			}
			return nil
		})
	},
	Proof: t05WrapProof,
})

// t05Share adds the mount and the volume with the wrapper where they are absent.
func t05Share(e *editor, container []string) {
	mounts := under(container, "volumeMounts")
	if !slices.ContainsFunc(objects(e.get(mounts...)), func(m map[string]any) bool {
		return strings.TrimRight(str(m["mountPath"]), "/") == "/fjord/bin"
	}) {
		e.push(map[string]any{"name": "fjord-bin", "mountPath": "/fjord/bin"}, mounts...)
	}
	if volumes := under(templateSpec, "volumes"); !slices.Contains(names(e.get(volumes...)), "fjord-bin") {
		e.push(map[string]any{"name": "fjord-bin", "emptyDir": map[string]any{}}, volumes...)
	}
}

var _ = add(hookCase{
	Name:    "T05c2-secret-wrapper-anywhere",
	Summary: "Commands are wrapped by a program that resolves secrets in variables, unless the program is somewhere in the command or its arguments. An init container puts the program in a volume.",
	Why:     "Wrappers of others may go around the program, even by a shell, and it is still found. The mount, the volume and the init container are each looked for alone, so each is there once and comes back if it is removed.",
	Webhook: register("envsecrets2.fjord.example", "apps", "v1", "deployments", create, update),
	Samples: []string{t05SecretSample},
	New: func() http.Handler {
		return editing(func(_ *admissionv1.AdmissionRequest, e *editor) error {
			if str(e.get("spec", "template", "metadata", "annotations", "secrets.fjord.example/env")) != "true" {
				return nil
			}
			wrapped := false
			for i, c := range objects(e.get(under(templateSpec, "containers")...)) {
				command := t05Strings(c["command"])
				if len(command) == 0 {
					continue // the entrypoint of the image is unknown here
				}
				path := under(templateSpec, "containers", index(i))
				if !strings.Contains(strings.Join(append(command, t05Strings(c["args"])...), "\n"), t05Wrapper) {
					e.set(append([]string{t05Wrapper, "--"}, command...), under(path, "command")...)
				}
				t05Share(e, path)
				wrapped = true
			}
			init := under(templateSpec, "initContainers")
			if !wrapped {
				return nil
			}
			at := slices.Index(names(e.get(init...)), "fjord-bin")
			if at < 0 {
				at = len(names(e.get(init...)))
				e.push(map[string]any{
					"name": "fjord-bin", "image": "registry.fjord.example/env-secrets:1.21", "command": []any{"cp", "/env-secrets", "/fjord/bin/"},
				}, init...)
			}
			t05Share(e, under(init, index(at)))
			return nil
		})
	},
	Proof: func(p *prover) string {
		if seen := t05WrapProof(p); seen != "" {
			return seen
		}
		live := p.created(p.object(t05SecretSample))
		if out := p.updated(live, p.object(t05SecretSample)); !same(out, live) {
			return "the author's manifest gives another result"
		}
		shell := copyOf(live)
		container := reach(shell, "spec", "template", "spec", "containers", "0").(map[string]any)
		container["command"], container["args"] = []any{"sh", "-c"}, []any{"exec " + t05Wrapper + " -- /app/mailer --queue=default"}
		if out := p.updated(live, shell); !same(out, shell) {
			return "the shell is wrapped"
		}
		bare := copyOf(live)
		spec := reach(bare, templateSpec...).(map[string]any)
		spec["volumes"], spec["initContainers"] = []any{}, nil
		if out := p.updated(live, bare); !same(out, live) {
			return "parts are not restored"
		}
		return ""
	},
})
