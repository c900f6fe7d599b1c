// SPDX-License-Identifier: Apache-2.0

package generate

import "strconv"

var (
	images = []string{
		"nginx", "nginx:1.27", "docker.io/library/nginx:1.27-alpine", "registry.example.com:5000/team/app:v1.2.3",
		"ghcr.io/example/app@sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", "localhost/app",
	}
	containerLists = []string{"containers", "initContainers", "ephemeralContainers"}
)

// container returns a container with a name that is new in the Pod, derived from one of names.
func (s *scope) container(names ...string) object {
	name := s.fresh(func(name string) bool {
		for _, list := range containerLists {
			if has(s.spec, list, "name", name) {
				return true
			}
		}
		return false
	}, names...)
	return object{"name": name, "image": pick(s.build, images...)}
}

// regular returns the containers that can have probes and lifecycle hooks: all except init containers that run to
// completion.
func (s *scope) regular() []object {
	cs := objects(s.spec, "containers")
	for _, c := range objects(s.spec, "initContainers") {
		if c["restartPolicy"] == "Always" {
			cs = append(cs, c)
		}
	}
	return cs
}

// all returns the containers and init containers.
func (s *scope) all() []object {
	return append(objects(s.spec, "containers"), objects(s.spec, "initContainers")...)
}

// some applies f to one of the containers, and to each of the others with a probability of 1/2. It
// reports whether any of them changed.
func (s *scope) some(cs []object, f func(object) bool) (changed bool) {
	if len(cs) == 0 {
		return false
	}
	sure := s.r.IntN(len(cs))
	for i, c := range cs {
		if i == sure || s.chance(0.5) {
			changed = f(c) || changed
		}
	}
	return changed
}

// inSome returns a trait that applies f to some containers. inRegular applies f only to containers that keep running.
func inSome(f func(*scope, object) bool) func(*scope) bool {
	return func(s *scope) bool { return s.some(s.all(), func(c object) bool { return f(s, c) }) }
}

func inRegular(f func(*scope, object) bool) func(*scope) bool {
	return func(s *scope) bool { return s.some(s.regular(), func(c object) bool { return f(s, c) }) }
}

func oneContainer(s *scope) bool {
	if len(listOf(s.spec, "containers")) == 0 {
		appendTo(s.spec, "containers", s.container("app", "main", "a"))
	}
	return len(listOf(s.spec, "containers")) == 1
}

func severalContainers(s *scope) bool {
	base := pick(s.build, "app", "web", "a")
	for range s.between(2, 4) {
		appendTo(s.spec, "containers", s.container(base, base+"-1", base+"-10", base+"-1-x", base+"1"))
	}
	return true
}

func manyContainers(s *scope) bool {
	if len(listOf(s.spec, "containers")) > 10 {
		return false
	}
	more := make([]any, 30)
	for i := range more {
		more[i] = s.container("many-" + strconv.Itoa(i))
	}
	appendTo(s.spec, "containers", more...)
	return true
}

func initContainers(s *scope) bool {
	for range s.between(1, 2) {
		appendTo(s.spec, "initContainers", s.container("init", "setup", "init-app"))
	}
	return true
}

func sidecars(s *scope) bool {
	c := s.container("sidecar", "init-proxy", "logs")
	c["restartPolicy"] = "Always"
	appendTo(s.spec, "initContainers", c)
	return true
}

// ephemeralContainers adds an ephemeral container. Only running Pods have these, so the old and the new object of an
// update both have it.
func ephemeralContainers(s *scope) bool {
	if !s.Update || s.rules.template {
		return false
	}
	c := s.container("debugger", "debugger-1")
	if regular := objects(s.spec, "containers"); s.chance(0.5) && len(regular) > 0 {
		c["targetContainerName"] = regular[0]["name"]
	}
	appendTo(s.spec, "ephemeralContainers", c)
	return true
}

func imagePullPolicy(value string) func(*scope) bool {
	return inSome(func(_ *scope, c object) bool { return put(c, "imagePullPolicy", value) })
}

func command(s *scope, c object) bool {
	args := put(c, "args", texts([]string{"--port=8080", "-v", "", "--name=$(POD_NAME)", "a b \"c\""}[:s.between(1, 5)]...))
	return s.chance(0.5) && put(c, "command", texts("/bin/sh", "-c", "exec app \"$@\" && echo <done>")) || args
}

// taken reports whether c or another container of the Pod uses the port.
func (s *scope) taken(c object, port int64, protocol string) bool {
	for _, c := range append(s.all(), c) {
		for _, p := range objects(c, "ports") {
			if number(p["containerPort"]) == port && (p["protocol"] == protocol || p["protocol"] == nil && protocol == "TCP") {
				return true
			}
		}
	}
	return false
}

func number(v any) int64 {
	switch v := v.(type) {
	case int64:
		return v
	case float64:
		return int64(v)
	}
	return 0
}

func (s *scope) port(c object) object {
	port, protocol := pick(s.build, int64(80), 8080, 9090, 15020, 1, 65535), pick(s.build, "TCP", "TCP", "TCP", "UDP", "SCTP")
	for s.taken(c, port, protocol) {
		port = s.between(1024, 65535)
	}
	p := object{"containerPort": port}
	if protocol != "TCP" || s.chance(0.3) {
		p["protocol"] = protocol
	}
	// Names of ports are optional here, but must differ within a container.
	if name := "p" + strconv.FormatInt(port, 10); s.chance(0.4) && !has(c, "ports", "name", name) {
		p["name"] = name
	} else if s.chance(0.3) && !has(c, "ports", "name", "http") {
		p["name"] = "http"
	}
	if s.chance(0.1) && s.spec["hostNetwork"] != true {
		p["hostPort"] = port
	}
	return p
}

func ports(s *scope, c object) bool {
	for range s.between(1, 3) {
		appendTo(c, "ports", s.port(c))
	}
	return true
}

// twoProtocols adds two ports with the same number and different protocols.
func twoProtocols(s *scope) bool {
	cs := s.regular()
	if len(cs) == 0 {
		return false
	}
	c := pick(s.build, cs...)
	if s.taken(c, 53, "TCP") || s.taken(c, 53, "UDP") {
		return false
	}
	first, second := object{"containerPort": int64(53), "protocol": "TCP"}, object{"containerPort": int64(53), "protocol": "UDP"}
	if s.chance(0.5) && !has(c, "ports", "name", "dns") && !has(c, "ports", "name", "dns-tcp") {
		first["name"], second["name"] = "dns-tcp", "dns"
	}
	appendTo(c, "ports", first, second)
	return true
}

var probeNames = []string{"livenessProbe", "readinessProbe", "startupProbe"}

// probe returns a trait that adds a probe with the handler to some containers.
func probe(handler func(*scope) object) func(*scope) bool {
	return inRegular(func(s *scope, c object) bool {
		name := pick(s.build, probeNames...)
		p := handler(s)
		if s.chance(0.4) {
			p["periodSeconds"] = s.between(1, 30)
		}
		if s.chance(0.3) {
			p["initialDelaySeconds"] = s.between(0, 30)
		}
		if s.chance(0.2) && name != "readinessProbe" {
			p["terminationGracePeriodSeconds"] = s.between(1, 30)
		}
		return put(c, name, p)
	})
}

func (s *scope) probePort() any {
	return pick[any](s.build, int64(8080), int64(15020), "http", "metrics")
}

func httpProbe(s *scope) object {
	h := object{"port": s.probePort()}
	if s.chance(0.7) {
		h["path"] = pick(s.build, "/healthz", "/", "/ready?full=1&x=%20")
	}
	if s.chance(0.4) {
		h["scheme"] = pick(s.build, "HTTP", "HTTPS")
	}
	if s.chance(0.2) {
		h["httpHeaders"] = []any{object{"name": "X-Probe", "value": "1"}, object{"name": "X-Probe", "value": "2"}}
	}
	return object{"httpGet": h}
}

func tcpProbe(s *scope) object { return object{"tcpSocket": object{"port": s.probePort()}} }

func execProbe(*scope) object { return object{"exec": object{"command": texts("cat", "/tmp/ready")}} }

func grpcProbe(s *scope) object {
	h := object{"port": int64(9000)}
	if s.chance(0.5) {
		h["service"] = pick(s.build, "", "health")
	}
	return object{"grpc": h}
}

func lifecycle(s *scope, c object) bool {
	if _, taken := c["lifecycle"]; taken {
		return false
	}
	hook := func() object {
		if grace, set := s.spec["terminationGracePeriodSeconds"]; s.chance(0.3) && (!set || number(grace) > 0) {
			return object{"sleep": object{"seconds": int64(1)}}
		}
		return pick(s.build, execProbe, httpProbe)(s)
	}
	l := object{}
	if s.chance(0.7) {
		l["preStop"] = hook()
	}
	if len(l) == 0 || s.chance(0.3) {
		l["postStart"] = hook()
	}
	c["lifecycle"] = l
	return true
}
