// SPDX-License-Identifier: Apache-2.0

package unseen

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/admitkit/admitkit/pkg/webhook"
)

func collisionBugs() []Case {
	return []Case{{
		Name:    "U03b1-vault-volume-cut-to-63",
		Kind:    "Pod",
		Summary: "gives each container a volume in memory for its Vault secrets, named after the container",
		Why: "CREATE a Pod with two containers whose names have the first 49 characters in common: the names of their " +
			"volumes are cut to 63 characters and are equal, so the Pod has two volumes of one name and is rejected.",
		Webhook: podsOnCreate,
		build: typed(func(req *webhook.Request[corev1.Pod]) error {
			if req.Object.Annotations["vault.example.com/inject"] != "true" {
				return nil
			}
			return addVaultVolumes(&req.Object.Spec)
		}),
		Sample: vaultPod,
		Proof:  wrongFor(longNames, vaultVolumesRepeat),
	}, {
		Name:    "U03b2-scratch-volume-short-hash",
		Kind:    "Deployment",
		Summary: "gives each container a scratch volume of its own, named by a hash of the container's name",
		Why: "CREATE a Deployment with two containers whose names have the same hash of four bits: the second one " +
			"finds the volume there and mounts it, so both write into one volume.",
		Webhook: deploymentsOnWrite,
		build: raw(func(_ *admissionv1.AdmissionRequest, d object) ([]operation, error) {
			return addScratch(d, func(container string) (volume string) {
				h := fnv.New32a()
				h.Write([]byte(container))
				return fmt.Sprintf("scratch-%x", h.Sum32()&0xf)
			}, "")
		}),
		Sample: scratchDeployment,
		Proof:  wrongFor(sameHash, scratchShared),
	}, {
		Name:    "U03b3-tls-secret-of-host",
		Kind:    "Ingress",
		Summary: "adds a TLS entry for each host, with a Secret named after the host with dashes for dots",
		Why: "CREATE an Ingress for shop.example.com, then UPDATE it with a further rule for shop-example.com: the " +
			"webhook finds an entry with the Secret shop-example-com-tls, so the second host stays without TLS.",
		Webhook: ingressesOnWrite,
		Sample:  hostIngress,
		Proof:   wrongAfter(dashedHost, hostsWithoutTLS),
	}, {
		Name:    "U03b4-log-shipper-beside-init",
		Kind:    "Pod",
		Summary: "adds a log shipper to Pods that ask for one",
		Why: "CREATE a Pod that already runs log-shipper as an init container that is restarted: the webhook looks among the " +
			"containers only and adds a second one of that name, so the API server rejects the Pod.",
		Webhook: podsOnCreate,
		build: typed(func(req *webhook.Request[corev1.Pod]) error {
			spec := &req.Object.Spec
			isShipper := func(c corev1.Container) bool { return c.Name == "log-shipper" }
			if req.Object.Labels["logs.example.com/ship"] == "yes" && !slices.ContainsFunc(spec.Containers, isShipper) {
				spec.Containers = append(spec.Containers, logShipper)
			}
			return nil
		}),
		Sample: loggingPod,
		Proof:  wrongFor(shipperInInit, containersRepeat),
	}, {
		Name:    "U03b5-upper-case-keys",
		Kind:    "ConfigMap",
		Summary: "copies each key to one that can be the name of a variable: db.host to DB_HOST",
		Why: "CREATE a ConfigMap with the keys db.host and db-host: the copies have one name, and the order in which Go " +
			"goes through a map decides which value it has. A second call changes it.",
		Webhook: configMapsOnWrite,
		build: raw(func(_ *admissionv1.AdmissionRequest, cm object) ([]operation, error) {
			data, copies := dict(cm, "data"), object{}
			for key, value := range data {
				if name := variable(key); name != key {
					copies[name] = value
				}
			}
			return copyKeys(cm, copies), nil
		}),
		Sample: envConfigMap,
		Proof: unsteadyAfter(func(o object) {
			put(o, "replica.example.com", "data", "db-host")
		}),
	}}
}

// vaultVolumeName returns a name that is cut to the maximum length of the API server.
func vaultVolumeName(container string) string {
	name := "vault-secrets-" + container
	return strings.TrimRight(name[:min(len(name), 63)], "-")
}

// addVaultVolumes adds a volume for each container. It compares names only with the volumes that were there before, and
// not with those that it adds.
func addVaultVolumes(spec *corev1.PodSpec) error {
	before := slices.Clone(spec.Volumes)
	var err error
	eachContainer(spec, func(c *corev1.Container) {
		name := vaultVolumeName(c.Name)
		if !slices.ContainsFunc(before, func(v corev1.Volume) bool { return v.Name == name }) {
			spec.Volumes = append(spec.Volumes, memoryVolume(name))
		}
		if e := ensureMount(c, corev1.VolumeMount{Name: name, MountPath: "/vault/secrets"}); e != nil {
			err = e
		}
	})
	return err
}

func memoryVolume(name string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
		EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}}}
}

// ensureMount adds a mount, and denies the Pod if something else is mounted there.
func ensureMount(c *corev1.Container, mount corev1.VolumeMount) error {
	for _, m := range c.VolumeMounts {
		if m.MountPath != mount.MountPath {
			continue
		}
		if m.Name != mount.Name {
			return webhook.Denyf("container %s: the path %s is taken by volume %s", c.Name, m.MountPath, m.Name)
		}
		return nil
	}
	c.VolumeMounts = append(c.VolumeMounts, mount)
	return nil
}

// addScratch mounts a scratch volume in each container of a Deployment that has a size annotation. If subPath is
// "name", the containers share one volume, and each mounts a directory with its own name.
func addScratch(d object, volumeOf func(container string) string, subPath string) ([]operation, error) {
	if text(d, "spec", "template", "metadata", "annotations", "scratch.example.com/size") == "" {
		return nil, nil
	}
	spec := dict(d, "spec", "template", "spec")
	after := clone(spec)
	for _, field := range []string{"initContainers", "containers"} {
		for i, c := range list(spec, field) {
			volume := volumeOf(text(c, "name"))
			if at := named(list(after, "volumes"), volume); at < 0 {
				push(after, object{"name": volume, "emptyDir": object{}}, "volumes")
			} else if dict(list(after, "volumes")[at], "emptyDir") == nil {
				return nil, fmt.Errorf("%w: the volume %s is not an emptyDir", errDenied, volume)
			}
			mount := object{"name": volume, "mountPath": "/scratch"}
			if subPath == "name" {
				mount["subPath"] = text(c, "name")
			}
			mounts := list(c, "volumeMounts")
			switch j := slices.IndexFunc(mounts, func(m any) bool { return text(m, "mountPath") == "/scratch" }); {
			case j < 0:
				push(after, mount, field, i, "volumeMounts")
			case text(mounts[j], "name") != volume:
				return nil, fmt.Errorf("%w: something else is mounted on /scratch", errDenied)
			}
		}
	}
	if string(encode(after)) == string(encode(spec)) {
		return nil, nil
	}
	var ops []operation
	for _, field := range []string{"initContainers", "containers", "volumes"} {
		if string(encode(after[field])) != string(encode(spec[field])) {
			ops = append(ops, add(pointer("spec", "template", "spec", field), after[field]))
		}
	}
	return ops, nil
}

var logShipper = corev1.Container{Name: "log-shipper", Image: "registry.example.com/logging/shipper:4.2"}

func variable(key string) string {
	return strings.ToUpper(strings.NewReplacer(".", "_", "-", "_").Replace(key))
}

// copyKeys returns operations that set keys of a ConfigMap marked for use as variables.
func copyKeys(cm object, copies object) []operation {
	var ops []operation
	if annotation(cm, "config.example.com/as-env") == "" {
		return nil
	}
	for _, name := range sortedKeys(copies) {
		if dict(cm, "data")[name] != copies[name] {
			ops = append(ops, add(pointer("data", name), copies[name]))
		}
	}
	return ops
}
