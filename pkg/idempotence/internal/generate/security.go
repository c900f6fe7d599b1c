// SPDX-License-Identifier: Apache-2.0

package generate

// settings applies one of the functions to m, and each of the others with a probability of 0.3.
func (b *build) settings(m object, members ...func(object)) {
	members[b.r.IntN(len(members))](m)
	for _, f := range members {
		if b.chance(0.3) {
			f(m)
		}
	}
}

func with(name string, value any) func(object) { return func(m object) { put(m, name, value) } }

func podSecurity(s *scope) bool {
	if s.spec["securityContext"] != nil || s.windows() {
		return false
	}
	m := object{}
	if !s.chance(0.15) { // an empty securityContext is also a trait
		s.settings(m,
			with("runAsUser", pick(s.build, int64(1000), 0, 1337)), with("runAsGroup", int64(3000)), with("fsGroup", int64(2000)),
			with("runAsNonRoot", s.chance(0.5)), with("fsGroupChangePolicy", pick(s.build, "OnRootMismatch", "Always")),
			with("supplementalGroups", []any{int64(4000), int64(5000)}), with("seccompProfile", s.seccomp()),
			with("sysctls", []any{object{"name": "kernel.shm_rmid_forced", "value": "1"}}),
			with("seLinuxOptions", object{"level": "s0:c123,c456"}), with("appArmorProfile", object{"type": "RuntimeDefault"}),
		)
	}
	s.spec["securityContext"] = m
	if s.spec["hostIPC"] == true || s.spec["hostNetwork"] == true {
		delete(m, "sysctls") // they would be the sysctls of the host
	}
	return true
}

func (b *build) seccomp() object {
	p := object{"type": pick(b, "RuntimeDefault", "Unconfined", "Localhost")}
	if p["type"] == "Localhost" {
		p["localhostProfile"] = "profiles/app.json"
	}
	return p
}

func containerSecurity(s *scope, c object) bool {
	if c["securityContext"] != nil || s.windows() {
		return false
	}
	m := object{}
	if !s.chance(0.15) {
		s.settings(m,
			with("runAsUser", pick(s.build, int64(1000), 0, 1337)), with("runAsNonRoot", s.chance(0.5)),
			with("readOnlyRootFilesystem", s.chance(0.5)), with("seccompProfile", s.seccomp()),
			with("capabilities", object{"drop": texts("ALL"), "add": texts("NET_BIND_SERVICE")}),
			with("procMount", "Default"), s.privilege(),
		)
	}
	c["securityContext"] = m
	return true
}

// privilege returns a function that sets consistent values: a privileged container must allow privilege escalation.
func (b *build) privilege() func(object) {
	if b.chance(0.3) {
		return with("privileged", true)
	}
	return with("allowPrivilegeEscalation", b.chance(0.5))
}
