// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"bytes"
	"fmt"

	"sigs.k8s.io/yaml"
)

// values are the defaults of the chart, from the manifests.
type values struct {
	Image            imageValues
	Replicas         any
	Resources        any
	PullSecrets      any
	NodeSelector     any
	Tolerations      any
	PriorityClass    string
	Monitoring       bool // the project has manifests for monitoring
	NetworkPolicy    bool
	APIServerPorts   []any
	MonitoringSource string // the namespace of Prometheus
}

type imageValues struct{ Repository, Tag, Digest string }

func newValues(name string) *values {
	return &values{Image: imageValues{Repository: name, Tag: "latest"}, Replicas: 2}
}

// text returns values.yaml, with a comment for each value. It omits values for objects that the manifests do not have.
func (v *values) text() ([]byte, error) {
	var out bytes.Buffer
	type row struct {
		comment, key string
		value        any
	}
	rows := []row{
		{"The image of the program. A digest, such as sha256:…, replaces the tag.", "image",
			map[string]any{"repository": v.Image.Repository, "tag": v.Image.Tag, "digest": v.Image.Digest}},
		{"Names of Secrets with which the kubelet pulls the image, as {name: NAME}.", "imagePullSecrets", orEmpty(v.PullSecrets, []any{})},
		{"The number of Pods. Use 3 if a node can be down for long.", "replicas", v.Replicas},
		{"The Deployment sets GOMEMLIMIT to fit this memory limit.", "resources", v.Resources},
		{"The PriorityClass of the Pods, such as system-cluster-critical.", "priorityClassName", v.PriorityClass},
		{"The nodes for the Pods.", "nodeSelector", orEmpty(v.NodeSelector, map[string]any{})},
		{"The taints that the Pods tolerate.", "tolerations", orEmpty(v.Tolerations, []any{})},
	}
	if v.NetworkPolicy {
		rows = append(rows, row{"apiServerPorts are the port of the API server's Service and the port on which the API server listens. monitoringNamespace is the namespace of Prometheus.",
			"networkPolicy", map[string]any{"enabled": true, "apiServerPorts": v.APIServerPorts, "monitoringNamespace": v.MonitoringSource}})
	}
	if v.Monitoring {
		rows = append(rows, row{"Enable it if the cluster has the Prometheus Operator.", "monitoring", map[string]any{"enabled": false}})
	}
	for _, r := range rows {
		text, err := yaml.Marshal(map[string]any{r.key: r.value})
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&out, "# %s\n%s", r.comment, text)
	}
	return out.Bytes(), nil
}

// orEmpty returns value, or empty if the manifests do not set the value.
func orEmpty(value, empty any) any {
	if value == nil {
		return empty
	}
	return value
}
