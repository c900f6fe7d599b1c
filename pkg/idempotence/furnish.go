// SPDX-License-Identifier: Apache-2.0

package idempotence

import (
	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// furnished gives a document, and the Pods in it, a bit of everything that webhooks look at.
func furnished(doc any) any {
	for _, m := range []struct{ of, key, value string }{
		{"labels", "app.kubernetes.io/component", "Checkout-Service.With_a-Name-as-Long-as-the-API-Server-Allows-6"},
		{"labels", "team", "Shop"},
		{"annotations", "example.com/notes", "Two lines, \n \"quotes\" & <signs>"},
	} {
		if next, ok := tree.Put(doc, metadata.Member(m.of).Member(m.key), m.value); ok {
			doc = next
		}
	}
	if next, ok := tree.Put(doc, finalizers, []any{"example.com/archive", "example.com/notify"}); ok {
		doc = next
	}
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
				"env":             []any{fields{"name": "MODE", "value": "fast"}, fields{"name": "NODE", "valueFrom": fields{"fieldRef": fields{"fieldPath": "spec.nodeName"}}}},
				"ports":           []any{fields{"name": "http", "containerPort": int64(8080)}},
				"envFrom":         []any{fields{"configMapRef": fields{"name": "settings"}}, fields{"prefix": "DB_", "secretRef": fields{"name": "database"}}},
				"resources":       fields{"limits": fields{"memory": "512Mi"}, "requests": fields{"memory": "256Mi", "cpu": "400m"}},
				"securityContext": fields{"runAsUser": int64(1000), "capabilities": fields{"drop": []any{"ALL"}}},
				"lifecycle":       fields{"preStop": fields{"exec": fields{"command": []any{"sleep", "5"}}}},
				"livenessProbe":   probe("http"), "readinessProbe": probe(int64(8080)),
				"volumeMounts": []any{fields{"name": "data", "mountPath": "/data"}},
			},
			fields{
				"name": "app-2", "image": "nginx", "resources": fields{"limits": fields{"cpu": "500m"}, "requests": fields{"memory": "300Mi"}},
				"securityContext": fields{"allowPrivilegeEscalation": false},
				"readinessProbe":  probe(int64(80)), "volumeMounts": []any{fields{"name": "data", "mountPath": "/var/data", "readOnly": true}},
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
		"securityContext":  fields{"runAsNonRoot": true, "fsGroup": int64(2000)},
		"dnsConfig":        fields{"nameservers": []any{"192.0.2.53", "192.0.2.54"}, "options": []any{fields{"name": "ndots", "value": "2"}}},
		"affinity": fields{"nodeAffinity": fields{"requiredDuringSchedulingIgnoredDuringExecution": fields{"nodeSelectorTerms": []any{
			fields{"matchExpressions": []any{fields{"key": "disk", "operator": "In", "values": []any{"ssd"}}}}}}}},
		"topologySpreadConstraints": []any{fields{"maxSkew": int64(1), "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "ScheduleAnyway",
			"labelSelector": fields{"matchLabels": fields{"team": "Shop"}}}},
	}
}
