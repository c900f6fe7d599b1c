// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"slices"
	"strconv"
)

// sources has a function for each member of a volume that can be its source.
var sources = []struct {
	name string
	make func(*scope) object
}{
	{"emptyDir", emptyDir}, {"configMap", configMap}, {"secret", secret}, {"hostPath", hostPath},
	{"downwardAPI", func(s *scope) object { return object{"items": []any{s.fieldFile("labels")}} }},
	{"projected", projected}, {"persistentVolumeClaim", claim}, {"ephemeral", ephemeral},
	{"csi", func(*scope) object {
		return object{"driver": "csi.example.com", "volumeAttributes": object{"share": "a"}}
	}},
	{"nfs", func(s *scope) object {
		return object{"server": "nfs.example.com", "path": "/", "readOnly": s.chance(0.5)}
	}},
}

func emptyDir(s *scope) object {
	v := object{}
	if s.chance(0.3) {
		v["medium"] = pick(s.build, "Memory", "")
	}
	if s.chance(0.3) {
		v["sizeLimit"] = pick[any](s.build, "1.5Gi", "64Mi", int64(1000000))
	}
	return v
}

// files adds members that ConfigMap, Secret and similar volumes have in common.
func (b *build) files(v object) object {
	if b.chance(0.3) {
		v["items"] = []any{object{"key": "config", "path": "app/config.yaml"}}
	}
	if b.chance(0.3) {
		v["defaultMode"] = pick(b, int64(420), 256, 0)
	}
	if b.chance(0.3) {
		v["optional"] = b.chance(0.5)
	}
	return v
}

func configMap(s *scope) object {
	return s.files(object{"name": pick(s.build, "settings", "settings.v2")})
}

func secret(s *scope) object { return s.files(object{"secretName": pick(s.build, "tls", "tls.v2")}) }

func hostPath(s *scope) object {
	v := object{"path": pick(s.build, "/var/run/app", "/", "/dev/shm")}
	if s.chance(0.5) {
		v["type"] = pick(s.build, "", "DirectoryOrCreate", "Directory", "FileOrCreate", "File", "Socket", "CharDevice", "BlockDevice")
	}
	return v
}

func (b *build) fieldFile(path string) object {
	return object{"path": path, "fieldRef": object{"fieldPath": pick(b, "metadata.labels", "metadata.annotations", "metadata.namespace")}}
}

// projected returns the source of a projected volume with files of several sources, each at its own path.
func projected(s *scope) object {
	token := object{"path": "token"}
	if s.chance(0.6) {
		token["expirationSeconds"] = pick(s.build, int64(600), 3607)
	}
	if s.chance(0.5) {
		token["audience"] = "vault"
	}
	all := []any{
		object{"configMap": object{"name": "ca", "items": []any{object{"key": "ca", "path": "ca.crt"}}}},
		object{"downwardAPI": object{"items": []any{s.fieldFile("namespace")}}}, object{"secret": object{"name": "tls", "optional": true}},
	}
	sources := all[:s.between(1, 3)]
	// Without the ServiceAccount plugin, a Pod that names no ServiceAccount must not have a token.
	if (s.rules.template || s.spec["serviceAccountName"] != nil) && s.chance(0.7) {
		sources = append([]any{object{"serviceAccountToken": token}}, sources[:s.between(0, int64(len(sources)))]...)
	}
	return object{"sources": sources}
}

func claim(s *scope) object {
	v := object{"claimName": pick(s.build, "data", "data-0")}
	if s.chance(0.3) {
		v["readOnly"] = true
	}
	return v
}

func ephemeral(s *scope) object {
	return object{"volumeClaimTemplate": object{"spec": claimSpec(s.build)}}
}

func claimSpec(b *build) object {
	spec := object{
		"accessModes": texts(pick(b, "ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod")),
		"resources":   object{"requests": object{"storage": pick(b, "1Gi", "1.5Gi", "1e9")}},
	}
	if b.chance(0.4) {
		spec["storageClassName"] = pick(b, "fast", "")
	}
	if b.chance(0.3) {
		spec["volumeMode"] = "Filesystem"
	}
	return spec
}

func (s *scope) volume(names ...string) object {
	taken := func(name string) bool {
		return has(s.spec, "volumes", "name", name) || slices.Contains(s.rules.volumes, name)
	}
	v := object{"name": s.fresh(taken, names...)}
	source := sources[s.r.IntN(len(sources))]
	v[source.name] = source.make(s)
	return v
}

var volumeNames = []string{"data", "data-1", "config", "certs", "tok", "tmp"}

// volumesOf returns a choice of volumes with a trait for each source.
func volumesOf(weight float64) choice {
	c := choice{weight: weight}
	for _, source := range sources {
		c.traits = append(c.traits, trait{"volume " + source.name, func(s *scope) bool {
			v := s.volume(volumeNames...)
			appendTo(s.spec, "volumes", object{"name": v["name"], source.name: source.make(s)})
			return true
		}})
	}
	return c
}

func severalVolumes(s *scope) bool {
	for range s.between(2, 4) {
		appendTo(s.spec, "volumes", s.volume(volumeNames...))
	}
	return true
}

// mountable returns the names of the volumes that contain files.
func (s *scope) mountable() (names []string) {
	for _, v := range objects(s.spec, "volumes") {
		if name := textOf(v, "name"); name != "" && v["persistentVolumeClaim"] == nil {
			names = append(names, name)
		}
	}
	return append(names, s.rules.volumes...)
}

var mountPaths = []string{"/data", "/data/sub", "/certs", "/etc/config", "/var/run/secrets/tok", "/tmp"}

// freshPath returns a path at which the container has no mount.
func (s *scope) freshPath(c object) string {
	return s.fresh(func(path string) bool {
		return has(c, "volumeMounts", "mountPath", path) || has(c, "volumeDevices", "devicePath", path)
	}, mountPaths...)
}

// mount returns a mount of a volume of the Pod, or nil if the Pod has no volume to mount.
func (s *scope) mount(c object) object {
	names := s.mountable()
	if len(names) == 0 {
		return nil
	}
	m := object{"name": pick(s.build, names...), "mountPath": s.freshPath(c)}
	if s.chance(0.3) {
		m["readOnly"] = s.chance(0.7)
	}
	if s.chance(0.1) {
		m["mountPropagation"] = pick(s.build, "None", "HostToContainer")
	}
	return m
}

// needVolume adds a volume if there is none to mount.
func (s *scope) needVolume() {
	if len(s.mountable()) == 0 {
		appendTo(s.spec, "volumes", object{"name": s.fresh(func(name string) bool { return has(s.spec, "volumes", "name", name) }, volumeNames...), "emptyDir": object{}})
	}
}

func mounts(s *scope) bool {
	s.needVolume()
	return s.some(s.all(), func(c object) bool {
		for range s.between(1, 2) {
			appendTo(c, "volumeMounts", s.mount(c))
		}
		return true
	})
}

// subPaths mounts one volume at several paths of a container.
func subPaths(s *scope) bool {
	s.needVolume()
	volume := pick(s.build, s.mountable()...)
	return s.some(s.all(), func(c object) bool {
		for i := range s.between(1, 3) {
			m := object{"name": volume, "mountPath": s.freshPath(c)}
			m[pick(s.build, "subPath", "subPath", "subPathExpr")] = "part-" + strconv.FormatInt(i, 10)
			appendTo(c, "volumeMounts", m)
		}
		return true
	})
}

// samePath mounts volumes at one path in several containers.
func samePath(s *scope) bool {
	if len(s.all()) < 2 {
		return false
	}
	s.needVolume()
	path := pick(s.build, mountPaths...)
	n := 0
	for _, c := range s.all() {
		if !has(c, "volumeMounts", "mountPath", path) && !has(c, "volumeDevices", "devicePath", path) {
			appendTo(c, "volumeMounts", object{"name": pick(s.build, s.mountable()...), "mountPath": path})
			n++
		}
	}
	return n > 1
}

// blockDevice adds a claim that is used as a block device.
func blockDevice(s *scope) bool {
	cs := s.all()
	if len(cs) == 0 {
		return false
	}
	v := s.volume("block", "disk")
	appendTo(s.spec, "volumes", object{"name": v["name"], "persistentVolumeClaim": object{"claimName": "raw"}})
	c := pick(s.build, cs...)
	path := s.fresh(func(path string) bool { return has(c, "volumeDevices", "devicePath", path) }, "/dev/xvda")
	appendTo(c, "volumeDevices", object{"name": v["name"], "devicePath": path})
	return true
}
