// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// A builder converts the manifests of a project to templates of Helm. It first replaces values by placeholders, which
// the YAML encoder does not quote. It then replaces the placeholders in the encoded text by Helm expressions.
type builder struct {
	name        string // of the project and its namespace
	values      *values
	uninstaller document // the Job that "helm uninstall" runs first, or nil
}

// Placeholders for Helm expressions. Each is a plain scalar in YAML.
const (
	inNamespace  = "HELMxNAMESPACEx"
	atReplicas   = "HELMxREPLICASx"
	atImage      = "HELMxIMAGEx"
	atResources  = "HELMxRESOURCESx"
	atPullSecret = "HELMxPULLSECRETSx"
	atPriority   = "HELMxPRIORITYx"
	atNodes      = "HELMxNODESx"
	atTaints     = "HELMxTAINTSx"
	atPorts      = "HELMxPORTSx"
	atMonitoring = "HELMxMONITORINGx"
	atOwner      = "HELMxOWNERx"
)

var expressions = strings.NewReplacer(
	inNamespace, "{{ .Release.Namespace }}",
	atReplicas, "{{ .Values.replicas }}",
	atImage, `{{ .Values.image.repository }}{{ with .Values.image.digest }}@{{ . }}{{ else }}:{{ .Values.image.tag }}{{ end }}`,
	atResources, "{{ toJson .Values.resources }}",
	atPullSecret, "{{ toJson .Values.imagePullSecrets }}",
	atPriority, "{{ toJson .Values.priorityClassName }}",
	atNodes, "{{ toJson .Values.nodeSelector }}",
	atTaints, "{{ toJson .Values.tolerations }}",
	atMonitoring, "{{ .Values.networkPolicy.monitoringNamespace }}",
)

// blocks replace whole lines that have a placeholder. ${1} is the indentation of the line.
var blocks = []struct {
	line *regexp.Regexp
	text string
}{
	{regexp.MustCompile(`(?m)^( *)(- )?ports: ` + atPorts + `$`), `${1}${2}ports:
${1}  {{- range .Values.networkPolicy.apiServerPorts }}
${1}  - {port: {{ . }}, protocol: TCP}
${1}  {{- end }}`},
	// The garbage collector deletes the configurations together with the namespace. Otherwise they would remain without
	// a server and block requests. "helm template" has no cluster, so its output has no owner.
	{regexp.MustCompile(`(?m)^( *)ownerReferences: ` + atOwner + `$`), `${1}{{- with lookup "v1" "Namespace" "" .Release.Namespace }}
${1}ownerReferences:
${1}- {apiVersion: v1, kind: Namespace, name: {{ .metadata.name }}, uid: {{ .metadata.uid }}}
${1}{{- end }}`},
}

// document converts one object. It returns nothing for the Namespace, because the user of Helm chooses one.
func (b *builder) document(doc document, folder string) ([]byte, error) {
	kind, _ := doc["kind"].(string)
	condition := ""
	b.inNamespace(doc)
	switch kind {
	case "Namespace":
		return nil, nil
	case "Deployment":
		b.deployment(doc)
	case "ClusterRole":
		b.clusterRole(doc)
	case "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration":
		b.configuration(doc)
	case "NetworkPolicy":
		b.networkPolicy(doc)
		condition = ".Values.networkPolicy.enabled"
	case "Certificate":
		b.certificate(doc)
	case "ResourceQuota": // the quota that allows the priority class
		b.quota(doc)
		condition = ".Values.priorityClassName"
	}
	if folder == "monitoring" {
		b.values.Monitoring = true
		condition = ".Values.monitoring.enabled"
	}
	return render(doc, condition)
}

// render encodes an object with Helm's expressions. If condition is not empty, Helm omits the object unless the
// condition is true.
func render(doc document, condition string) ([]byte, error) {
	text, err := yaml.Marshal(doc)
	if err != nil {
		return nil, err
	}
	out := escape(string(text))
	for _, block := range blocks {
		out = block.line.ReplaceAllString(out, block.text)
	}
	out = expressions.Replace(out)
	if condition != "" {
		out = "{{- if " + condition + " }}\n" + out + "{{- end }}\n"
	}
	return []byte(out), nil
}

// inNamespace moves an object and the subjects of a binding to the namespace of the release.
func (b *builder) inNamespace(doc document) {
	subjects, _ := doc["subjects"].([]any)
	for _, holder := range append(subjects, doc["metadata"]) {
		if m, ok := holder.(document); ok && m["namespace"] == b.name {
			m["namespace"] = inNamespace
		}
	}
}

// deployment replaces the settings of the program's Deployment that differ between clusters.
func (b *builder) deployment(doc document) {
	spec := member(doc, "spec")
	pod := member(spec, "template", "spec")
	program := b.program(pod)
	if program == nil {
		return // a Deployment of another program
	}
	if replicas, ok := spec["replicas"]; ok {
		b.values.Replicas, spec["replicas"] = replicas, atReplicas
	}
	b.values.PullSecrets, pod["imagePullSecrets"] = pod["imagePullSecrets"], atPullSecret
	b.values.NodeSelector, pod["nodeSelector"] = pod["nodeSelector"], atNodes
	b.values.Tolerations, pod["tolerations"] = pod["tolerations"], atTaints
	b.values.PriorityClass, _ = pod["priorityClassName"].(string)
	pod["priorityClassName"] = atPriority
	b.values.Resources, program["resources"] = program["resources"], atResources
	program["image"] = atImage
	args, _ := program["args"].([]any)
	program["args"] = append(slices.Clone(args), "--namespace="+inNamespace) // the last value of a repeated flag wins
	if slices.Contains(args, any("--self-managed")) {
		b.uninstaller = uninstaller(b.name, pod, program)
	}
}

// program returns the container with the image of the project, or nil.
func (b *builder) program(pod document) document {
	containers, _ := pod["containers"].([]any)
	for _, c := range containers {
		if c, ok := c.(document); ok && c["image"] == b.name {
			return c
		}
	}
	return nil
}

// uninstaller returns the Job that removes what a self-managed program has installed. The program creates its webhook
// configurations, so they are not part of the release, and "helm uninstall" would leave them without a server.
func uninstaller(name string, pod, program document) document {
	container := maps.Clone(program)
	for _, field := range []string{"ports", "readinessProbe", "livenessProbe", "startupProbe", "lifecycle"} {
		delete(container, field)
	}
	args, _ := program["args"].([]any)
	container["args"] = append(slices.Clone(args), "--uninstall")
	spec := maps.Clone(pod)
	for _, field := range []string{"affinity", "topologySpreadConstraints", "terminationGracePeriodSeconds"} {
		delete(spec, field)
	}
	spec["containers"], spec["restartPolicy"] = []any{container}, "Never"
	return document{
		"apiVersion": "batch/v1", "kind": "Job",
		"metadata": document{"name": name + "-uninstall", "namespace": inNamespace, "annotations": document{
			"helm.sh/hook": "pre-delete", "helm.sh/hook-delete-policy": "before-hook-creation,hook-succeeded",
		}},
		"spec": document{
			"backoffLimit": 3, "activeDeadlineSeconds": 180,
			// Its labels differ from those of the Deployment, so that the Service does not select it.
			"template": document{"metadata": document{"labels": document{"app.kubernetes.io/name": name + "-uninstall"}}, "spec": spec},
		},
	}
}

// clusterRole lets the program read the namespace of the release.
func (b *builder) clusterRole(doc document) {
	rules, _ := doc["rules"].([]any)
	for _, rule := range rules {
		rule, _ := rule.(document)
		resources, _ := rule["resources"].([]any)
		names, _ := rule["resourceNames"].([]any)
		for i := range names {
			if names[i] == b.name && slices.Equal(resources, []any{"namespaces"}) {
				names[i] = inNamespace
			}
		}
	}
}

// configuration makes the namespace of the release the owner of a webhook configuration. It also replaces the namespace
// of the project by that of the release.
func (b *builder) configuration(doc document) {
	metadata := member(doc, "metadata")
	if metadata == nil {
		return
	}
	metadata["ownerReferences"] = atOwner
	if annotations, ok := metadata["annotations"].(document); ok {
		const inject = "cert-manager.io/inject-ca-from"
		if from, ok := annotations[inject].(string); ok {
			annotations[inject] = b.moved(from, "", "/")
		}
	}
	webhooks, _ := doc["webhooks"].([]any)
	for _, w := range webhooks {
		w, _ := w.(document)
		if service := member(w, "clientConfig", "service"); service["namespace"] == b.name {
			service["namespace"] = inNamespace
		}
		expressions, _ := member(w, "namespaceSelector")["matchExpressions"].([]any)
		for _, e := range expressions {
			e, _ := e.(document)
			list, _ := e["values"].([]any)
			for i := range list {
				if e["key"] == "kubernetes.io/metadata.name" && list[i] == b.name {
					list[i] = inNamespace
				}
			}
		}
	}
}

// moved replaces the namespace of the project by that of the release in text, but only between before and after.
func (b *builder) moved(text, before, after string) string {
	return strings.Replace(text, before+b.name+after, before+inNamespace+after, 1)
}

func (b *builder) certificate(doc document) {
	names, _ := member(doc, "spec")["dnsNames"].([]any)
	for i := range names {
		if name, ok := names[i].(string); ok {
			names[i] = b.moved(name, ".", ".svc")
		}
	}
}

func (b *builder) quota(doc document) {
	expressions, _ := member(doc, "spec", "scopeSelector")["matchExpressions"].([]any)
	for _, e := range expressions {
		if e, ok := e.(document); ok && e["scopeName"] == "PriorityClass" {
			e["values"] = []any{atPriority}
		}
	}
}

// networkPolicy replaces the ports of the API server, and the namespace of Prometheus, by values of the chart.
func (b *builder) networkPolicy(doc document) {
	b.values.NetworkPolicy = true
	spec := member(doc, "spec")
	ingress, _ := spec["ingress"].([]any)
	for _, rule := range ingress {
		rule, _ := rule.(document)
		from, _ := rule["from"].([]any)
		for _, source := range from {
			source, _ := source.(document)
			labels := member(source, "namespaceSelector", "matchLabels")
			if name, ok := labels["kubernetes.io/metadata.name"].(string); ok && b.values.MonitoringSource == "" {
				b.values.MonitoringSource, labels["kubernetes.io/metadata.name"] = name, atMonitoring
			}
		}
	}
	egress, _ := spec["egress"].([]any)
	for _, rule := range egress {
		rule, _ := rule.(document)
		ports, _ := rule["ports"].([]any)
		if _, limited := rule["to"]; limited || len(ports) == 0 {
			continue
		}
		for _, p := range ports {
			if p, ok := p.(document); ok {
				b.values.APIServerPorts = append(b.values.APIServerPorts, p["port"])
			}
		}
		rule["ports"] = atPorts
		return
	}
}

// member returns an object below doc, or nil.
func member(doc document, path ...string) document {
	for _, name := range path {
		doc, _ = doc[name].(document)
	}
	return doc
}
