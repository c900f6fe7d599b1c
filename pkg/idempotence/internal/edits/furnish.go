// SPDX-License-Identifier: Apache-2.0

package edits

import (
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// Furnish sets labels, annotations and finalizers of a document, and many Pod fields that webhooks read. It returns the
// changed document.
func Furnish(doc any) any {
	for _, m := range []struct{ of, key, value string }{
		{"labels", "app.kubernetes.io/component", "Checkout-Service.With_a-Name-as-Long-as-the-API-Server-Allows-6"},
		{"labels", "team", "Shop"},
		{"annotations", "example.com/notes", "Two lines, \n \"quotes\" & <signs>"},
	} {
		if next, ok := tree.Put(doc, Metadata.Member(m.of).Member(m.key), m.value); ok {
			doc = next
		}
	}
	if next, ok := tree.Put(doc, Finalizers, []any{"example.com/archive", "example.com/notify"}); ok {
		doc = next
	}
	for _, containers := range ContainerLists(doc) {
		spec := containers[:len(containers)-1]
		for name, value := range furniture() {
			if next, ok := tree.Put(doc, spec.Member(name), value); ok {
				doc = next
			}
		}
	}
	return doc
}

// Fields are the members of an object.
type Fields = map[string]any

func furniture() Fields {
	probe := func(port any) Fields { return Fields{"httpGet": Fields{"path": "/healthz", "port": port}} }
	return Fields{
		"containers": []any{
			Fields{
				"name": "app", "image": "registry.example.com/team/app:v1.2", "command": []any{"/app"}, "args": []any{"--verbose", "--port=8080"},
				"env":             []any{Fields{"name": "MODE", "value": "fast"}, Fields{"name": "NODE", "valueFrom": Fields{"fieldRef": Fields{"fieldPath": "spec.nodeName"}}}},
				"ports":           []any{Fields{"name": "http", "containerPort": int64(8080)}},
				"envFrom":         []any{Fields{"configMapRef": Fields{"name": "settings"}}, Fields{"prefix": "DB_", "secretRef": Fields{"name": "database"}}},
				"resources":       Fields{"limits": Fields{"memory": "512Mi"}, "requests": Fields{"memory": "256Mi", "cpu": "400m"}},
				"securityContext": Fields{"runAsUser": int64(1000), "capabilities": Fields{"drop": []any{"ALL"}}},
				"lifecycle":       Fields{"preStop": Fields{"exec": Fields{"command": []any{"sleep", "5"}}}},
				"livenessProbe":   probe("http"), "readinessProbe": probe(int64(8080)),
				"volumeMounts": []any{Fields{"name": "data", "mountPath": "/data"}},
			},
			Fields{
				"name": "app-2", "image": "nginx", "resources": Fields{"limits": Fields{"cpu": "500m"}, "requests": Fields{"memory": "300Mi"}},
				"securityContext": Fields{"allowPrivilegeEscalation": false},
				"readinessProbe":  probe(int64(80)), "volumeMounts": []any{Fields{"name": "data", "mountPath": "/var/data", "readOnly": true}},
			},
		},
		"initContainers": []any{Fields{"name": "prepare", "image": "busybox:1.36", "command": []any{"sh", "-c", "true"}}},
		"volumes":        []any{Fields{"name": "data", "emptyDir": Fields{}}, Fields{"name": "settings", "configMap": Fields{"name": "settings"}}},
		"nodeSelector":   Fields{"disk": "ssd"},
		"tolerations": []any{
			Fields{"key": "dedicated", "operator": "Equal", "value": "shop", "effect": "NoSchedule"},
			Fields{"key": "dedicated", "operator": "Equal", "value": "shop", "effect": "NoExecute", "tolerationSeconds": int64(60)},
		},
		"imagePullSecrets": []any{Fields{"name": "registry"}},
		"hostAliases":      []any{Fields{"ip": "10.0.0.1", "hostnames": []any{"db"}}},
		"securityContext":  Fields{"runAsNonRoot": true, "fsGroup": int64(2000)},
		"dnsConfig":        Fields{"nameservers": []any{"192.0.2.53", "192.0.2.54"}, "options": []any{Fields{"name": "ndots", "value": "2"}}},
		"affinity": Fields{"nodeAffinity": Fields{"requiredDuringSchedulingIgnoredDuringExecution": Fields{"nodeSelectorTerms": []any{
			Fields{"matchExpressions": []any{Fields{"key": "disk", "operator": "In", "values": []any{"ssd"}}}}}}}},
		"topologySpreadConstraints": []any{Fields{"maxSkew": int64(1), "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "ScheduleAnyway",
			"labelSelector": Fields{"matchLabels": Fields{"team": "Shop"}}}},
	}
}
