// SPDX-License-Identifier: Apache-2.0

package generate

import "strconv"

var envNames = []string{"PORT", "APP", "APP_ENV", "LOG_LEVEL", "OPTS", "PATH", "POD_NAME", "http.proxy", "my-var", "_"}

func (b *build) env(name string) object {
	e := object{"name": name}
	switch {
	case b.chance(0.7):
		e["value"] = pick(b, "1", "debug", "-Xmx1g -agent", "$(POD_NAME):$$(X)", "a=b,c=d", "", "<&>", "ünïcode\n")
	case b.chance(0.3): // a name without a value means the empty value
	default:
		e["valueFrom"] = b.valueFrom()
	}
	return e
}

func (b *build) valueFrom() object {
	switch b.r.IntN(4) {
	case 0:
		ref := object{"fieldPath": pick(b, "metadata.name", "status.podIP", "spec.nodeName", "metadata.annotations['example.com/note']", "metadata.labels['app']")}
		if b.chance(0.3) {
			ref["apiVersion"] = "v1"
		}
		return object{"fieldRef": ref}
	case 1:
		ref := object{"resource": pick(b, "limits.cpu", "requests.memory", "limits.ephemeral-storage")}
		if b.chance(0.4) {
			ref["divisor"] = pick(b, "1", "0")
		}
		return object{"resourceFieldRef": ref}
	}
	ref := object{"name": pick(b, "settings", "settings.v2"), "key": pick(b, "log-level", "a.b_c")}
	if b.chance(0.3) {
		ref["optional"] = b.chance(0.5)
	}
	return object{pick(b, "configMapKeyRef", "secretKeyRef"): ref}
}

// freshEnv returns an environment variable with a new name in the container.
func (b *build) freshEnv(c object) object {
	return b.env(b.fresh(func(name string) bool { return has(c, "env", "name", name) }, append(envNames, "STRANGER")...))
}

func envs(s *scope, c object) bool {
	for range s.between(1, 4) {
		appendTo(c, "env", s.freshEnv(c))
	}
	return true
}

func envFromFields(s *scope, c object) bool {
	e := s.freshEnv(c)
	delete(e, "value")
	e["valueFrom"] = s.valueFrom()
	appendTo(c, "env", e)
	return true
}

// repeatedEnv adds an environment variable with an existing name. This is legal, and the last value is used.
func repeatedEnv(s *scope, c object) bool {
	name := pick(s.build, envNames...)
	if env := objects(c, "env"); len(env) > 0 {
		if first := textOf(pick(s.build, env...), "name"); first != "" {
			name = first
		}
	} else {
		appendTo(c, "env", s.env(name))
	}
	appendTo(c, "env", s.env(name))
	return true
}

func manyEnvs(s *scope) bool {
	cs := s.all()
	if len(cs) == 0 {
		return false
	}
	c := pick(s.build, cs...)
	if len(listOf(c, "env")) > 20 {
		return false
	}
	more := make([]any, 100)
	for i := range more {
		more[i] = s.env("VAR_" + strconv.Itoa(i))
	}
	appendTo(c, "env", more...)
	return true
}

func (b *build) envSource() object {
	ref := object{"name": pick(b, "settings", "settings.v2")}
	if b.chance(0.3) {
		ref["optional"] = true
	}
	source := object{pick(b, "configMapRef", "secretRef"): ref}
	if b.chance(0.4) {
		source["prefix"] = pick(b, "CFG_", "X")
	}
	return source
}

func envFrom(s *scope, c object) bool {
	for range s.between(1, 2) {
		appendTo(c, "envFrom", s.envSource())
	}
	return true
}
