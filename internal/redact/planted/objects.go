// SPDX-License-Identifier: Apache-2.0

package planted

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
)

type object = map[string]any

type list = []any

// An Object is an object with secrets, in a form that the API server accepts for a create.
type Object struct {
	Group, Version, Kind, Resource string
	Namespaced                     bool
	JSON                           []byte
}

// SecretPath is the field path of a field of the custom resource that is secret only because the user says so.
const SecretPath = "spec.pin"

// Objects returns an object of each kind. Their names end in the suffix.
func (p *Planter) Objects(suffix string) []Object {
	name := "planted-" + suffix
	kinds := []struct {
		group, version, kind, resource string
		cluster                        bool
		fields                         object
	}{
		{"", "v1", "Pod", "pods", false, object{"spec": p.podSpec()}},
		{"", "v1", "Secret", "secrets", false, object{"data": object{"a": p.base64(), "username": p.base64(), "b.txt": p.base64()}, "stringData": object{"name": p.password(), "x": p.password()}}},
		{"", "v1", "Secret", "secrets", false, object{"type": "kubernetes.io/basic-auth", "data": object{"username": p.base64(), "password": p.base64()}}},
		{"", "v1", "Secret", "secrets", false, object{"type": "kubernetes.io/ssh-auth", "data": object{"ssh-privatekey": p.base64()}}},
		{"", "v1", "Secret", "secrets", false, object{"type": "kubernetes.io/tls", "data": object{"tls.key": p.base64(), "tls.crt": p.base64()}}},
		{"", "v1", "Secret", "secrets", false, object{"type": "kubernetes.io/dockerconfigjson", "data": object{".dockerconfigjson": p.dockerConfig()}}},
		{"", "v1", "ConfigMap", "configmaps", false, object{"data": object{"a": p.password(), "app.properties": "host=db\ndb.password=" + p.password() + "\n"}, "binaryData": object{"b": p.base64()}}},
		{"", "v1", "ServiceAccount", "serviceaccounts", false, object{"imagePullSecrets": list{object{"name": "pull"}}}},
		{"", "v1", "Service", "services", false, object{"spec": object{"ports": list{object{"port": 80}}, "selector": object{"app": "web"}}}},
		{"", "v1", "PersistentVolume", "persistentvolumes", true, object{"spec": object{"capacity": object{"storage": "1Gi"}, "accessModes": list{"ReadWriteOnce"},
			"csi": object{"driver": "d.example.com", "volumeHandle": "v", "volumeAttributes": object{"password": p.password(), "share": "a"}}}}},
		{"apps", "v1", "Deployment", "deployments", false, p.workload()},
		{"apps", "v1", "StatefulSet", "statefulsets", false, p.workload("serviceName", "web")},
		{"apps", "v1", "DaemonSet", "daemonsets", false, p.workload()},
		{"apps", "v1", "ReplicaSet", "replicasets", false, p.workload()},
		{"batch", "v1", "Job", "jobs", false, object{"spec": p.job()}},
		{"batch", "v1", "CronJob", "cronjobs", false, object{"spec": object{"schedule": "0 3 * * *", "jobTemplate": object{"spec": p.job()}}}},
		{"storage.k8s.io", "v1", "StorageClass", "storageclasses", true, object{"provisioner": "p.example.com", "parameters": object{"restuserkey": "a", "adminSecret": p.password()}}},
		{"networking.k8s.io", "v1", "Ingress", "ingresses", false, object{"spec": object{"defaultBackend": object{"service": object{"name": "web", "port": object{"number": 80}}}}}},
		{"shop.example.com", "v1", "Widget", "widgets", false, object{"spec": p.widget()}},
	}
	var all []Object
	for i, k := range kinds {
		o := object{"kind": k.kind, "apiVersion": k.version, "metadata": p.metadata(fmt.Sprintf("%s-%d", name, i))}
		if k.group != "" {
			o["apiVersion"] = k.group + "/" + k.version
		}
		for field, value := range k.fields {
			o[field] = value
		}
		data, _ := json.Marshal(o) // it always marshals
		all = append(all, Object{Group: k.group, Version: k.version, Kind: k.kind, Resource: k.resource, Namespaced: !k.cluster, JSON: data})
	}
	return all
}

func (p *Planter) base64() string { return base64.StdEncoding.EncodeToString([]byte(p.password())) }

func (p *Planter) dockerConfig() string {
	text := p.plant(`{"auths":{"r.example":{"username":"ada","password":"`, p.text(lower+digits, 12), `","auth":"`) + p.plant("", p.mixed(24), `"}}}`)
	return base64.StdEncoding.EncodeToString([]byte(text))
}

// metadata returns the metadata of an object, with secrets in labels and annotations.
func (p *Planter) metadata(name string) object {
	applied, _ := json.Marshal(object{"kind": "Pod", "apiVersion": "v1", "spec": p.podSpec()}) // it always marshals
	secret, _ := json.Marshal(object{"kind": "Secret", "apiVersion": "v1", "data": object{"a": p.base64()}})
	return object{
		"name":   name,
		"labels": object{"app": "web", "release": p.label()},
		"annotations": object{
			"kubectl.kubernetes.io/last-applied-configuration": string(applied) + "\n",
			"example.com/applied":                              string(secret),
			"example.com/api-token":                            p.password(),
			"example.com/note":                                 "see " + p.token() + " in the wiki",
			"example.com/manifest":                             "kind: Pod\nspec:\n  containers:\n  - env:\n    - name: X\n      value: " + p.plant("", p.text(lower+digits, 12)+"v", "") + "\n",
		},
	}
}

// podSpec returns the spec of a Pod with secrets.
func (p *Planter) podSpec() object {
	copied := p.plant("", p.text(lower+digits, 11)+"5k", "")
	exec := object{"exec": object{"command": list{"sh", "-c", "check --token " + p.plant("", p.text(lower+digits, 14), "") + " && true"}}}
	container := func(name string) object {
		return object{
			"name": name, "image": "r.example/team/token:v1",
			"env": list{object{"name": "A", "value": p.password()}, object{"name": "DB_PASSWORD", "value": p.password()}, object{"name": "COPIED", "value": copied},
				object{"name": "B", "valueFrom": object{"secretKeyRef": object{"name": "db", "key": "password"}}}, object{"name": "C", "value": "$(A) on"}},
			"command": list{"sh", "-c", "PGPASSWORD=" + p.plant("", p.text(lower+digits, 12), "") + " psql -h db; curl -H 'Authorization: Bearer " + p.plant("", p.mixed(20), "") + "' https://api.example"},
			"args": list{"--port=8080", "--db-password=" + p.plant("", p.text(lower+upper+digits+".-_/", 14), ""), "--token", p.plant("", p.text(lower, 11), ""),
				"-u", p.plant("", "ada:"+p.text(lower, 9), ""), p.token(), "copy of " + copied},
		}
	}
	first := container("app")
	first["lifecycle"] = object{"postStart": exec}
	first["livenessProbe"] = object{"httpGet": object{"path": "/", "port": 8080, "httpHeaders": list{object{"name": "X-Api-Key", "value": p.plant("", p.text(lower+digits, 16), "")},
		object{"name": "Authorization", "value": "Basic " + p.plant("", p.mixed(20), "")}}}}
	first["readinessProbe"] = exec
	return object{"containers": list{first, container("second")}, "initContainers": list{container("init")}}
}

func (p *Planter) template() object {
	return object{"metadata": object{"labels": object{"app": "web"}, "annotations": object{"example.com/note": p.token()}}, "spec": p.podSpec()}
}

// workload returns a workload with a Pod template, and further fields of its spec.
func (p *Planter) workload(more ...string) object {
	spec := object{"selector": object{"matchLabels": object{"app": "web"}}, "template": p.template()}
	for i := 0; i < len(more); i += 2 {
		spec[more[i]] = more[i+1]
	}
	return object{"spec": spec}
}

func (p *Planter) job() object {
	t := object{"metadata": object{"annotations": object{"example.com/note": p.token()}}, "spec": p.podSpec()}
	t["spec"].(object)["restartPolicy"] = "Never"
	return object{"template": t}
}

// widget returns the spec of a custom resource.
func (p *Planter) widget() object {
	return object{
		"auth":     object{"username": "ada", "password": p.password(), "clientSecret": p.password()},
		"tokens":   list{p.password(), p.password()},
		"url":      "https://ada:" + p.plant("", p.text(lower+digits, 12), "") + "@git.example/shop",
		"text":     p.token(),
		"pin":      p.plant("", "8"+p.text(digits, 9), ""),
		"env":      object{"A": p.password()},
		"extraEnv": list{object{"name": "A", "value": p.password()}},
		"template": object{"kind": "Secret", "apiVersion": "v1", "data": object{"a": p.base64()}},
		"limits":   object{"cpu": "250m", "memory": "1Gi"},
		"replicas": 3,
	}
}
