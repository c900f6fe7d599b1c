// SPDX-License-Identifier: Apache-2.0

package generate

import "encoding/base64"

var configTraits = []choice{
	{0, []trait{
		{"no data", func(s *scope) bool { return s.spec["data"] == nil }},
		{"empty data", func(s *scope) bool { return put(s.spec, "data", object{}) }},
		{"data", func(s *scope) bool { return s.enter(child(s.spec, "data"), 3, dataEntries) }},
	}},
	one(0.4, "binary data", func(s *scope) bool { return put(s.spec, "binaryData", object{"blob": blob}) }),
	one(0.2, "immutable", setOne("immutable", true, false)),
}

var blob = base64.StdEncoding.EncodeToString([]byte{0, 1, 0xfe, 0xff})

var dataEntries = []entry{
	{"config.yaml", "a: 1\nb:\n- \"<x>\"\n"}, {"empty", ""}, {"UPPER_case-1.2", "ünïcode ☃"}, {"script", "#!/bin/sh\nexec \"$@\" && true\n"},
}

var secretTraits = []choice{
	one(0.6, "data", func(s *scope) bool { return put(s.spec, "data", object{"token": blob, "empty": ""}) }),
	one(0.4, "string data", func(s *scope) bool { return s.enter(child(s.spec, "stringData"), 2, dataEntries) }),
	one(0.4, "type", setOne("type", "Opaque", "example.com/token")),
	one(0.2, "immutable", setOne("immutable", true, false)),
}

var accountTraits = []choice{
	one(0.4, "image pull secrets", pullSecrets),
	one(0.4, "secrets", setOne("secrets", []any{object{"name": "robot-token"}})),
	one(0.4, "automount off", setOne("automountServiceAccountToken", false, true)),
}

// servicePort returns a port with a name, because each of several ports needs one.
func (b *build) servicePort(spec object) object {
	port := b.between(1, 65535)
	for has(spec, "ports", "port", port) {
		port = b.between(1, 65535)
	}
	name := b.fresh(func(name string) bool { return has(spec, "ports", "name", name) }, "http", "metrics", "stranger")
	p := object{"name": name, "port": port}
	if b.chance(0.5) {
		p["protocol"] = pick(b, "TCP", "UDP", "SCTP")
	}
	if b.chance(0.5) {
		p["targetPort"] = pick[any](b, int64(8080), "http", "metrics")
	}
	return p
}

var serviceTraits = []choice{
	one(0.6, "several ports", func(s *scope) bool {
		spec := child(s.spec, "spec")
		for _, p := range objects(spec, "ports") {
			put(p, "name", "first")
		}
		for range s.between(1, 2) {
			appendTo(spec, "ports", s.servicePort(spec))
		}
		return true
	}),
	one(0.3, "port 53 TCP and UDP", func(s *scope) bool {
		spec := child(s.spec, "spec")
		if has(spec, "ports", "port", int64(53)) || has(spec, "ports", "name", "dns") {
			return false
		}
		for _, p := range objects(spec, "ports") {
			put(p, "name", "first")
		}
		appendTo(spec, "ports", object{"name": "dns", "port": int64(53), "protocol": "UDP"}, object{"name": "dns-tcp", "port": int64(53), "protocol": "TCP"})
		return true
	}),
	one(0.7, "selector", inside("selector", object{"app": "web"}, object{})),
	{0.6, []trait{{"type ClusterIP", inside("type", "ClusterIP")}, {"type NodePort", outside("NodePort")}, {"type LoadBalancer", outside("LoadBalancer")}}},
	one(0.3, "session affinity", inside("sessionAffinity", "None", "ClientIP")),
	one(0.3, "not ready", inside("publishNotReadyAddresses", true)),
}

// outside returns a trait that sets the type of a Service to one that needs a cluster IP.
func outside(name string) func(*scope) bool {
	return func(s *scope) bool {
		spec := child(s.spec, "spec")
		return spec["clusterIP"] == nil && put(spec, "type", name)
	}
}

func (b *build) ingressRule() object {
	path := object{"path": pick(b, "/", "/api"), "pathType": pick(b, "Prefix", "Exact", "ImplementationSpecific"), "backend": b.backend()}
	rule := object{"http": object{"paths": []any{path}}}
	if b.chance(0.6) {
		rule["host"] = pick(b, "example.com", "*.example.com", "a.example.com")
	}
	return rule
}

func (b *build) backend() object {
	port := object{"number": int64(80)}
	if b.chance(0.3) {
		port = object{"name": "http"}
	}
	return object{"service": object{"name": "web", "port": port}}
}

var ingressTraits = []choice{
	one(0.4, "class", inside("ingressClassName", "nginx")),
	one(0.4, "TLS", inside("tls", []any{object{"hosts": texts("example.com"), "secretName": "tls"}})),
	one(0.3, "default backend", func(s *scope) bool { return put(child(s.spec, "spec"), "defaultBackend", s.backend()) }),
}
