// SPDX-License-Identifier: Apache-2.0

package generate

// podTraits are the traits of a Pod in order. Mounts come after volumes, and traits of the whole Pod after
// traits of its containers.
var podTraits = []choice{
	{0, []trait{{"one container", oneContainer}, {"one container", oneContainer}, {"several containers", severalContainers}}},
	one(0.04, "many containers", manyContainers),
	one(0.5, "init containers", initContainers),
	one(0.4, "sidecar containers", sidecars),
	one(0.5, "ephemeral containers", ephemeralContainers),
	one(0.3, "service account", serviceAccount),
	volumesOf(0.6),
	volumesOf(0.4),
	one(0.2, "several volumes", severalVolumes),
	one(0.6, "mounts", mounts),
	one(0.3, "subPath mounts", subPaths),
	one(0.3, "one path in several containers", samePath),
	one(0.15, "block device", blockDevice),

	one(0.4, "command and args", inSome(command)),
	one(0.6, "env", inSome(envs)),
	one(0.3, "env valueFrom", inSome(envFromFields)),
	one(0.3, "repeated env", inSome(repeatedEnv)),
	one(0.04, "many env", manyEnvs),
	one(0.3, "envFrom", inSome(envFrom)),
	one(0.5, "ports", inRegular(ports)),
	one(0.3, "port 53 TCP and UDP", twoProtocols),
	{0.6, []trait{
		{"limits only", resources(true, false, plainSizes)}, {"requests only", resources(false, true, plainSizes)},
		{"limits and requests", resources(true, true, plainSizes)}, {"odd quantities", resources(true, true, oddSizes)},
		{"odd limits", resources(true, false, oddSizes)}, {"odd requests", resources(false, true, oddSizes)},
		{"no resources", inSome(func(_ *scope, c object) bool { return put(c, "resources", object{}) })},
	}},
	one(0.2, "extended resource", inSome(device)),
	{0.4, []trait{{"HTTP probe", probe(httpProbe)}, {"TCP probe", probe(tcpProbe)}, {"exec probe", probe(execProbe)}, {"gRPC probe", probe(grpcProbe)}}},
	{0.3, []trait{{"HTTP probe", probe(httpProbe)}, {"TCP probe", probe(tcpProbe)}, {"exec probe", probe(execProbe)}, {"gRPC probe", probe(grpcProbe)}}},
	{0.4, []trait{{"imagePullPolicy Always", imagePullPolicy("Always")}, {"imagePullPolicy Never", imagePullPolicy("Never")}, {"imagePullPolicy IfNotPresent", imagePullPolicy("IfNotPresent")}}},
	one(0.4, "container security context", inSome(containerSecurity)),
	one(0.2, "terminal", inSome(terminal)),

	{0.4, []trait{{"restartPolicy Always", restart("Always")}, {"restartPolicy OnFailure", restart("OnFailure")}, {"restartPolicy Never", restart("Never")}}},
	{0.3, []trait{{"dnsPolicy None", dnsNone}, {"dnsPolicy ClusterFirst", setOne("dnsPolicy", "ClusterFirst")}, {"dnsPolicy Default", setOne("dnsPolicy", "Default")}, {"dnsPolicy ClusterFirstWithHostNet", setOne("dnsPolicy", "ClusterFirstWithHostNet")}}},
	{0.3, []trait{{"dns config", dnsConfig}}},
	one(0.3, "grace period", gracePeriod),
	one(0.3, "lifecycle hooks", inRegular(lifecycle)),
	one(0.3, "pod security context", podSecurity),
	one(0.4, "tolerations", tolerations),
	one(0.3, "tolerations of one key", twoEffects),
	one(0.3, "node selector", nodeSelector),
	{0.3, []trait{{"node affinity", nodeAffinity}, {"pod affinity", podAffinity("podAffinity")}, {"pod anti-affinity", podAffinity("podAntiAffinity")}, {"empty affinity", setOne("affinity", object{})}}},
	one(0.2, "topology spread", spreads),
	one(0.2, "host aliases", hostAliases),
	one(0.3, "image pull secrets", pullSecrets),
	one(0.2, "automount off", setOne("automountServiceAccountToken", false, true)),
	one(0.2, "priority class", priorityClass),
	one(0.2, "scheduler", setOne("schedulerName", "default-scheduler", "example-scheduler")),
	one(0.2, "host name", hostName),
	one(0.2, "shared processes", sharedProcesses),
	one(0.2, "service links", setOne("enableServiceLinks", false, true)),
	one(0.2, "host network", hostNetwork),
	one(0.1, "host IPC", hostIPC),
	one(0.2, "os", setOne("os", object{"name": "linux"})),
	one(0.2, "deadline", func(s *scope) bool { return !s.rules.noDeadline && put(s.spec, "activeDeadlineSeconds", int64(600)) }),
	one(0.2, "readiness gates", setOne("readinessGates", []any{object{"conditionType": "example.com/ready"}})),
	one(0.15, "scheduling gates", schedulingGates),
	one(0.15, "node name", func(s *scope) bool { return s.spec["schedulingGates"] == nil && put(s.spec, "nodeName", "node-1") }),
	one(0.3, "empty lists", emptyLists),
	one(0.2, "null members", nullMembers),
}

// restart returns a trait that sets a restart policy if it is legal. A required policy is already set.
func restart(policy string) func(*scope) bool {
	return func(s *scope) bool {
		for _, legal := range s.rules.restart {
			if legal == policy {
				return put(s.spec, "restartPolicy", policy)
			}
		}
		return false
	}
}

// gracePeriod sets a grace period. In a Pod with lifecycle hooks, the period is longer than their sleep.
func gracePeriod(s *scope) bool {
	for _, c := range s.all() {
		if c["lifecycle"] != nil {
			return put(s.spec, "terminationGracePeriodSeconds", int64(60))
		}
	}
	return put(s.spec, "terminationGracePeriodSeconds", pick(s.build, int64(0), 5, 60))
}

// priorityClass sets a class that every cluster has. Admission then sets the priority.
func priorityClass(s *scope) bool {
	return s.spec["priority"] == nil && put(s.spec, "priorityClassName", pick(s.build, "system-cluster-critical", "system-node-critical"))
}

func sharedProcesses(s *scope) bool {
	return s.spec["hostPID"] == nil && !s.windows() && put(s.spec, "shareProcessNamespace", s.chance(0.5))
}

// windows reports whether the Pod is for Windows, where settings of Linux are illegal.
func (s *scope) windows() bool {
	os, _ := s.spec["os"].(object)
	return os["name"] == "windows"
}

func dnsNone(s *scope) bool {
	if s.spec["dnsPolicy"] != nil || s.spec["dnsConfig"] != nil {
		return false
	}
	s.spec["dnsPolicy"], s.spec["dnsConfig"] = "None", object{"nameservers": texts("10.0.0.10"), "searches": texts("example.com")}
	return true
}

func dnsConfig(s *scope) bool {
	return put(s.spec, "dnsConfig", object{"options": []any{object{"name": "ndots", "value": "2"}, object{"name": "edns0"}}})
}

func pullSecrets(s *scope) bool {
	if s.spec["imagePullSecrets"] != nil {
		return false
	}
	return put(s.spec, "imagePullSecrets", []any{object{"name": "registry"}, object{"name": "registry-2"}}[:s.between(1, 2)])
}

func serviceAccount(s *scope) bool {
	name := pick(s.build, "default", "robot")
	if s.spec["serviceAccount"] != nil || !put(s.spec, "serviceAccountName", name) {
		return false
	}
	if s.chance(0.2) { // the deprecated name of the member
		s.spec["serviceAccount"] = name
	}
	return true
}

func hostName(s *scope) bool {
	if s.chance(0.5) {
		put(s.spec, "subdomain", "db")
	}
	return put(s.spec, "hostname", "db-0")
}

// hostNetwork lets the Pod use the network of the host. There each container port is also a host port and must be
// unique.
func hostNetwork(s *scope) bool {
	type hostPort struct{ port, protocol any }
	seen := map[hostPort]bool{}
	for _, c := range s.all() {
		for _, p := range objects(c, "ports") {
			key := hostPort{number(p["containerPort"]), p["protocol"]}
			if key.protocol == nil {
				key.protocol = "TCP"
			}
			if seen[key] || p["hostPort"] != nil && number(p["hostPort"]) != number(p["containerPort"]) {
				return false
			}
			seen[key] = true
		}
	}
	m, _ := s.spec["securityContext"].(object)
	return m["sysctls"] == nil && s.spec["hostUsers"] == nil && s.spec["hostnameOverride"] == nil && !s.windows() && put(s.spec, "hostNetwork", true)
}

// hostIPC lets the Pod use the IPC namespace of the host. This is illegal together with sysctls of the Pod's own IPC
// namespace.
func hostIPC(s *scope) bool {
	m, _ := s.spec["securityContext"].(object)
	return m["sysctls"] == nil && s.spec["hostUsers"] == nil && !s.windows() && put(s.spec, "hostIPC", true)
}

func schedulingGates(s *scope) bool {
	if s.rules.noGates || s.spec["nodeName"] != nil {
		return false
	}
	return put(s.spec, "schedulingGates", []any{object{"name": "example.com/quota"}})
}

func emptyLists(s *scope) bool {
	name := pick(s.build, "tolerations", "volumes", "initContainers", "imagePullSecrets", "hostAliases")
	done := put(s.spec, name, []any{})
	for _, c := range s.all() {
		done = s.chance(0.5) && put(c, pick(s.build, "env", "volumeMounts", "ports", "args", "envFrom"), []any{}) || done
	}
	return done
}

// nullMembers sets missing members to null, which means the same as a missing member.
func nullMembers(s *scope) bool {
	done := put(s.spec, pick(s.build, "volumes", "tolerations", "nodeSelector", "affinity", "securityContext"), nil)
	for _, c := range s.all() {
		done = s.chance(0.5) && put(c, pick(s.build, "env", "volumeMounts", "securityContext", "livenessProbe"), nil) || done
	}
	return done
}

func terminal(_ *scope, c object) bool { return put(c, "stdin", true) && put(c, "tty", true) }
