// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// furnished gives the Pods of a document a bit of everything that webhooks look at.
func furnished(doc any) any {
	for _, containers := range containerLists(doc) {
		spec := containers[:len(containers)-1]
		for name, value := range furniture() {
			if next, ok := tree.Put(doc, spec.Member(name), value); ok {
				doc = next
			}
		}
	}
	return doc
}

type fields = map[string]any

func furniture() fields {
	probe := func(port any) fields { return fields{"httpGet": fields{"path": "/healthz", "port": port}} }
	return fields{
		"containers": []any{
			fields{
				"name": "app", "image": "registry.example.com/team/app:v1.2", "command": []any{"/app"}, "args": []any{"--verbose", "--port=8080"},
				"env":           []any{fields{"name": "MODE", "value": "fast"}, fields{"name": "NODE", "valueFrom": fields{"fieldRef": fields{"fieldPath": "spec.nodeName"}}}},
				"ports":         []any{fields{"name": "http", "containerPort": int64(8080)}},
				"resources":     fields{"limits": fields{"memory": "512Mi", "cpu": "500m"}, "requests": fields{"memory": "256Mi"}},
				"livenessProbe": probe("http"), "readinessProbe": probe(int64(8080)),
				"volumeMounts": []any{fields{"name": "data", "mountPath": "/data"}},
			},
			fields{
				"name": "app-2", "image": "nginx", "resources": fields{"requests": fields{"memory": "300Mi", "cpu": "400m"}},
				"readinessProbe": probe(int64(80)), "volumeMounts": []any{fields{"name": "data", "mountPath": "/var/data", "readOnly": true}},
			},
		},
		"initContainers": []any{fields{"name": "prepare", "image": "busybox:1.36", "command": []any{"sh", "-c", "true"}}},
		"volumes":        []any{fields{"name": "data", "emptyDir": fields{}}, fields{"name": "settings", "configMap": fields{"name": "settings"}}},
		"nodeSelector":   fields{"disk": "ssd"},
		"tolerations": []any{
			fields{"key": "dedicated", "operator": "Equal", "value": "shop", "effect": "NoSchedule"},
			fields{"key": "dedicated", "operator": "Equal", "value": "shop", "effect": "NoExecute", "tolerationSeconds": int64(60)},
		},
		"imagePullSecrets": []any{fields{"name": "registry"}},
		"hostAliases":      []any{fields{"ip": "10.0.0.1", "hostnames": []any{"db"}}},
		"securityContext":  fields{"runAsNonRoot": true},
	}
}
