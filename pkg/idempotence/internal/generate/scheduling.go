// SPDX-License-Identifier: Apache-2.0

package generate

func (b *build) toleration() object {
	t := object{"key": pick(b, "dedicated", "example.com/special", "node.kubernetes.io/not-ready", "stranger")}
	switch {
	case b.chance(0.2):
		delete(t, "key")
		t["operator"] = "Exists"
	case b.chance(0.4):
		t["operator"] = "Exists"
	default:
		if b.chance(0.5) {
			t["operator"] = "Equal"
		}
		t["value"] = pick(b, "a", "", "b")
	}
	if b.chance(0.7) {
		t["effect"] = pick(b, "NoSchedule", "PreferNoSchedule", "NoExecute")
	}
	if t["effect"] == "NoExecute" && b.chance(0.5) {
		t["tolerationSeconds"] = pick(b, int64(0), 300, -1)
	}
	return t
}

func tolerations(s *scope) bool {
	for range s.between(1, 3) {
		appendTo(s.spec, "tolerations", s.toleration())
	}
	return true
}

// twoEffects adds tolerations of one key with two effects.
func twoEffects(s *scope) bool {
	key := pick(s.build, "dedicated", "example.com/special")
	for _, effect := range []string{"NoSchedule", "NoExecute"} {
		appendTo(s.spec, "tolerations", object{"key": key, "operator": "Exists", "effect": effect})
	}
	return true
}

func nodeSelector(s *scope) bool {
	return s.enter(child(s.spec, "nodeSelector"), 2, []entry{
		{"kubernetes.io/os", "linux"}, {"kubernetes.io/arch", "amd64"}, {"disk", "ssd"}, {"example.com/empty", ""},
	})
}

func (b *build) nodeTerm() object {
	var expressions []any
	for range b.between(1, 2) {
		e := object{"key": pick(b, "kubernetes.io/arch", "disk", "example.com/cores"), "operator": pick(b, "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")}
		switch e["operator"] {
		case "In", "NotIn":
			e["values"] = texts([]string{"amd64", "arm64"}[:b.between(1, 2)]...)
		case "Gt", "Lt":
			e["values"] = texts("4")
		}
		expressions = append(expressions, e)
	}
	return object{"matchExpressions": expressions}
}

// selector returns a random label selector for a field that selects Pods.
func (b *build) selector() object {
	if b.chance(0.5) {
		return object{"matchLabels": object{"app": pick(b, words...)}}
	}
	e := object{"key": "app", "operator": pick(b, "In", "NotIn", "Exists", "DoesNotExist")}
	if e["operator"] == "In" || e["operator"] == "NotIn" {
		e["values"] = texts("web", "api")
	}
	return object{"matchExpressions": []any{e}}
}

var topologyKeys = []string{"kubernetes.io/hostname", "topology.kubernetes.io/zone", "example.com/rack"}

func (b *build) podTerm() object {
	t := object{"labelSelector": b.selector(), "topologyKey": pick(b, topologyKeys...)}
	if b.chance(0.2) {
		t["namespaces"] = texts("other")
	} else if b.chance(0.2) {
		t["namespaceSelector"] = object{}
	}
	return t
}

func (b *build) weighed(name string, what object) object {
	return object{"weight": b.between(1, 100), name: what}
}

const (
	required  = "requiredDuringSchedulingIgnoredDuringExecution"
	preferred = "preferredDuringSchedulingIgnoredDuringExecution"
)

func nodeAffinity(s *scope) bool {
	a := child(child(s.spec, "affinity"), "nodeAffinity")
	did := s.chance(0.6) && put(a, required, object{"nodeSelectorTerms": []any{s.nodeTerm()}})
	return (!did || s.chance(0.4)) && put(a, preferred, []any{s.weighed("preference", s.nodeTerm())}) || did
}

func podAffinity(name string) func(*scope) bool {
	return func(s *scope) bool {
		a := child(child(s.spec, "affinity"), name)
		if s.chance(0.5) {
			return put(a, required, []any{s.podTerm()})
		}
		return put(a, preferred, []any{s.weighed("podAffinityTerm", s.podTerm()), s.weighed("podAffinityTerm", s.podTerm())})
	}
}

// spread returns a topology spread constraint with a new pair of key and action. It returns false if it finds none.
func (s *scope) spread() (object, bool) {
	for range 4 {
		key, action := pick(s.build, topologyKeys...), pick(s.build, "DoNotSchedule", "ScheduleAnyway")
		taken := false
		for _, c := range objects(s.spec, "topologySpreadConstraints") {
			taken = taken || c["topologyKey"] == key && c["whenUnsatisfiable"] == action
		}
		if taken {
			continue
		}
		c := object{"maxSkew": s.between(1, 3), "topologyKey": key, "whenUnsatisfiable": action, "labelSelector": s.selector()}
		if action == "DoNotSchedule" && s.chance(0.3) {
			c["minDomains"] = int64(2)
		}
		if s.chance(0.3) {
			c["nodeTaintsPolicy"] = pick(s.build, "Honor", "Ignore")
		}
		return c, true
	}
	return nil, false
}

func spreads(s *scope) bool {
	for range s.between(1, 2) {
		if c, ok := s.spread(); ok {
			appendTo(s.spec, "topologySpreadConstraints", c)
		}
	}
	return s.spec["topologySpreadConstraints"] != nil
}

var addresses = []string{"10.1.2.3", "127.0.0.1", "2001:db8::1", "10.1.2.4"}

// hostAlias returns a host alias with a random address. It returns false if the Pod has an alias with that address.
func (s *scope) hostAlias() (object, bool) {
	ip := pick(s.build, addresses...)
	return object{"ip": ip, "hostnames": texts("db.local", "db")}, !has(s.spec, "hostAliases", "ip", ip)
}

func hostAliases(s *scope) bool {
	for range s.between(1, 2) {
		if a, ok := s.hostAlias(); ok {
			appendTo(s.spec, "hostAliases", a)
		}
	}
	return true
}
