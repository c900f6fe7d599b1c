// SPDX-License-Identifier: Apache-2.0

package independent

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

const tmpJob = `
apiVersion: batch/v1
kind: Job
metadata:
  name: report
  namespace: finance
spec:
  template:
    spec:
      restartPolicy: Never
      containers:
      - name: render
        image: registry.acme.io/finance/report:12
        securityContext: {readOnlyRootFilesystem: true}
      - name: upload
        image: registry.acme.io/finance/upload:12
        securityContext: {readOnlyRootFilesystem: true}
`

func readOnlyRoot(c *corev1.Container) bool {
	return c.SecurityContext != nil && c.SecurityContext.ReadOnlyRootFilesystem != nil && *c.SecurityContext.ReadOnlyRootFilesystem
}

func tmpBroken(req *admissionv1.AdmissionRequest) ([]byte, error) {
	job := &batchv1.Job{}
	if err := json.Unmarshal(req.Object.Raw, job); err != nil {
		return nil, err
	}
	spec := &job.Spec.Template.Spec
	for _, list := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range list {
			c := &list[i]
			if !readOnlyRoot(c) || slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return path.Clean(m.MountPath) == "/tmp" }) {
				continue
			}
			name := "tmp-" + c.Name
			if len(name) > 63 {
				name = strings.TrimRight(name[:63], "-")
			}
			spec.Volumes = append(spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
			c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: name, MountPath: "/tmp"})
		}
	}
	return difference(req.Object.Raw, job)
}

func tmpCorrect(req *admissionv1.AdmissionRequest) ([]byte, error) {
	job := &batchv1.Job{}
	if err := json.Unmarshal(req.Object.Raw, job); err != nil {
		return nil, err
	}
	spec := &job.Spec.Template.Spec
	for _, list := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range list {
			c := &list[i]
			if !readOnlyRoot(c) ||
				slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return path.Clean(m.MountPath) == "/tmp" }) ||
				slices.ContainsFunc(c.VolumeDevices, func(d corev1.VolumeDevice) bool { return path.Clean(d.DevicePath) == "/tmp" }) {
				continue
			}
			sum := sha256.Sum256([]byte(c.Name)) // container names may be as long as volume names
			name := "tmp-" + hex.EncodeToString(sum[:8])
			switch at := slices.IndexFunc(spec.Volumes, func(v corev1.Volume) bool { return v.Name == name }); {
			case at < 0:
				spec.Volumes = append(spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
			case spec.Volumes[at].EmptyDir == nil:
				return nil, fmt.Errorf("the volume name %s is reserved for /tmp of container %s", name, c.Name)
			}
			c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: name, MountPath: "/tmp"})
		}
	}
	return difference(req.Object.Raw, job)
}

func tmpProof(p *prover) string {
	job := p.object(tmpJob)
	containers := objects(nested(job, "spec", "template", "spec")["containers"])
	common := strings.Repeat("x", 60)
	containers[0]["name"], containers[1]["name"] = common+"-ab", common+"-cd"
	job = p.created(job)
	volumes := names(nested(job, "spec", "template", "spec")["volumes"])
	if len(volumes) != 2 || volumes[0] == volumes[1] {
		return fmt.Sprintf("the API server rejects the volumes, or the containers share /tmp: %q", volumes)
	}
	return ""
}

var (
	_ = add(hookCase{
		Name:    "Z03b1-tmp-volume-truncated",
		Summary: "The volume is named after the container, and the name is truncated.",
		Why: "CREATE of a Job whose two containers have names of 63 characters that differ only at the end: both volumes get the same name of 63 characters, " +
			"so the API server rejects the valid Job with a duplicate volume. Also if another party removes only the mount, the next call adds the volume a second time.",
		Webhook: register("tmp.batch.acme.io", "batch", "v1", "jobs", create),
		New:     func() http.Handler { return serve(tmpBroken) },
		Samples: []string{tmpJob},
		Proof:   tmpProof,
	})
	_ = add(hookCase{
		Name:    "Z03c1-tmp-volume-hashed",
		Summary: "The volume name is a hash of the container's name.",
		Why:     "Container names are unique, and 64-bit hashes of them do not collide in practice. An existing emptyDir of the name is used again. A volume of the name with another source is denied in each call. A container that already mounts /tmp is left alone.",
		Webhook: register("tmp.batch.acme.io", "batch", "v1", "jobs", create),
		New:     func() http.Handler { return serve(tmpCorrect) },
		Samples: []string{tmpJob},
		Proof:   tmpProof,
	})
)

const secretsStatefulSet = `
apiVersion: apps/v1
kind: StatefulSet
metadata:
  name: ledger
  namespace: finance
  annotations:
    secret.acme.io/db.main: ledger-db
spec:
  serviceName: ledger
  replicas: 1
  selector: {matchLabels: {app: ledger}}
  template:
    metadata: {labels: {app: ledger}}
    spec:
      containers:
      - name: ledger
        image: registry.acme.io/finance/ledger:5.5.0
`

// secretMounts mounts a secret for each annotation secret.acme.io/NAME in /etc/secrets/NAME.
type secretMounts struct{ decoder admission.Decoder }

func (s *secretMounts) Handle(_ context.Context, req admission.Request) admission.Response {
	sts := &appsv1.StatefulSet{}
	if err := s.decoder.Decode(req, sts); err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	var keys []string
	for key := range sts.Annotations {
		if strings.HasPrefix(key, "secret.acme.io/") {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	spec := &sts.Spec.Template.Spec
	for _, key := range keys {
		short := strings.TrimPrefix(key, "secret.acme.io/")
		volume := "secret-" + strings.NewReplacer(".", "-", "_", "-").Replace(strings.ToLower(short))
		if slices.ContainsFunc(spec.Volumes, func(v corev1.Volume) bool { return v.Name == volume }) {
			continue
		}
		spec.Volumes = append(spec.Volumes, corev1.Volume{Name: volume, VolumeSource: corev1.VolumeSource{
			Secret: &corev1.SecretVolumeSource{SecretName: sts.Annotations[key]},
		}})
		for i := range spec.Containers {
			c := &spec.Containers[i]
			c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: volume, MountPath: "/etc/secrets/" + short, ReadOnly: true})
		}
	}
	raw, err := json.Marshal(sts)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	return admission.PatchResponseFromRaw(req.Object.Raw, raw)
}

func secretsProof(p *prover) string {
	sts := p.created(p.object(secretsStatefulSet))
	edited := copyOf(sts)
	set(edited, "ledger-db-replica", "metadata", "annotations", "secret.acme.io/db-main")
	sts = p.updated(sts, edited)
	mounts := objects(objects(nested(sts, "spec", "template", "spec")["containers"])[0]["volumeMounts"])
	for _, m := range mounts {
		if m["mountPath"] == "/etc/secrets/db-main" {
			return ""
		}
	}
	return fmt.Sprintf("no mount for secret.acme.io/db-main: %v", mounts)
}

var _ = add(hookCase{
	Name:    "Z03b2-secret-volume-sanitised",
	Summary: "Annotations secret.acme.io/db.main and secret.acme.io/db-main get the same volume name.",
	Why: "UPDATE that adds secret.acme.io/db-main beside db.main: its volume name secret-db-main is already there, so the second secret is never mounted. " +
		"If both are in the first call, db-main sorts first and db.main is lost instead: the result depends on the history. " +
		"A container added later gets no mount either, because the volume is there.",
	Webhook: register("secrets.acme.io", "apps", "v1", "statefulsets", create, update),
	New: func() http.Handler {
		return &admission.Webhook{Handler: &secretMounts{admission.NewDecoder(clientgoscheme.Scheme)}}
	},
	Samples: []string{secretsStatefulSet},
	Proof:   secretsProof,
})

const portsService = `
apiVersion: v1
kind: Service
metadata:
  name: gateway
  namespace: edge
spec:
  selector: {app: gateway}
  ports:
  - port: 443
    targetPort: 8443
`

// portNames names the ports that have no name. A Service with several ports needs names, and the mesh needs them always.
func portNames(req *admissionv1.AdmissionRequest) ([]byte, error) {
	service := &corev1.Service{}
	if err := json.Unmarshal(req.Object.Raw, service); err != nil {
		return nil, err
	}
	if len(service.Spec.Selector) == 0 {
		return nil, nil // the user maintains the EndpointSlices, whose port names must match
	}
	taken := map[string]bool{}
	for _, port := range service.Spec.Ports {
		taken[port.Name] = true
	}
	var ops []patchOp
	for i, port := range service.Spec.Ports {
		if port.Name != "" {
			continue
		}
		protocol := strings.ToLower(string(port.Protocol))
		if protocol == "" {
			protocol = "tcp"
		}
		name := fmt.Sprintf("%s-%d", protocol, port.Port)
		for n := 2; taken[name]; n++ {
			name = fmt.Sprintf("%s-%d-%d", protocol, port.Port, n)
		}
		taken[name] = true
		ops = append(ops, patchOp{"add", fmt.Sprintf("/spec/ports/%d/name", i), name})
	}
	return operations(ops)
}

var _ = add(hookCase{
	Name:    "Z03c2-service-port-names",
	Summary: "Unnamed ports get names by protocol and number; a taken name gets a further number.",
	Why: "A port with a name is never touched, and a new name is checked against all names of the Service, so names are unique and do not change. " +
		"A Service without selector is left alone, because the port names must match EndpointSlices that the user maintains. " +
		"The index in the patch is that of the request's object, and no operation changes the length of the list.",
	Webhook: register("portnames.edge.acme.io", "", "v1", "services", create, update),
	New:     func() http.Handler { return serve(portNames) },
	Samples: []string{portsService},
	Proof: func(p *prover) string {
		service := p.created(p.object(portsService))
		edited := copyOf(service)
		ports := nested(edited, "spec")["ports"].([]any)
		// The old port now has another number, and a new one takes its number.
		ports[0].(map[string]any)["port"] = 8443
		nested(edited, "spec")["ports"] = append([]any{map[string]any{"port": 443, "targetPort": 9443}}, ports...)
		service = p.updated(service, edited)
		if all := names(nested(service, "spec")["ports"]); len(all) != 2 || all[0] == all[1] || all[0] == "" {
			return fmt.Sprintf("names %q", all)
		}
		return ""
	},
})

const edgeDeployment = `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: storefront
  namespace: shop
  annotations: {edge.acme.io/inject: "true"}
spec:
  replicas: 1
  selector: {matchLabels: {app: storefront}}
  template:
    metadata: {labels: {app: storefront}}
    spec:
      containers:
      - name: storefront
        image: registry.acme.io/shop/storefront:77
`

// edgeProxy replaces older versions of the sidecar, which were named edge-proxy-v1, edge-proxy-v2, by the present one.
func edgeProxy(req *admissionv1.AdmissionRequest) ([]byte, error) {
	var d map[string]any
	if err := json.Unmarshal(req.Object.Raw, &d); err != nil {
		return nil, err
	}
	if str(nested(d, "metadata", "annotations")["edge.acme.io/inject"]) != "true" {
		return nil, nil
	}
	const image = "registry.acme.io/edge/proxy:3.0"
	containers := objects(nested(d, "spec", "template", "spec")["containers"])
	var ops []patchOp
	current := false
	for i := len(containers) - 1; i >= 0; i-- {
		name := str(containers[i]["name"])
		switch {
		case name == "edge-proxy" && !current:
			current = true
		case strings.HasPrefix(name, "edge-proxy"):
			ops = append(ops, patchOp{"remove", fmt.Sprintf("/spec/template/spec/containers/%d", i), nil})
		}
	}
	if !current {
		ops = append(ops, patchOp{"add", "/spec/template/spec/containers/-", map[string]any{"name": "edge-proxy", "image": image}})
	}
	return operations(ops)
}

var _ = add(hookCase{
	Name:    "Z03b3-edge-proxy-prefix",
	Summary: "The webhook takes each container whose name starts with edge-proxy for an old version of its sidecar.",
	Why: "CREATE or UPDATE of a Deployment with a container edge-proxy-exporter of the user (or of another webhook): the webhook removes it silently, " +
		"because its name starts with edge-proxy.",
	Webhook: register("inject.edge.acme.io", "apps", "v1", "deployments", create, update),
	New:     func() http.Handler { return serve(edgeProxy) },
	Samples: []string{edgeDeployment},
	Proof: func(p *prover) string {
		d := p.created(p.object(edgeDeployment))
		edited := copyOf(d)
		spec := nested(edited, "spec", "template", "spec")
		spec["containers"] = append(spec["containers"].([]any), map[string]any{"name": "edge-proxy-exporter", "image": "prom/exporter:1"})
		d = p.updated(d, edited)
		if all := names(nested(d, "spec", "template", "spec")["containers"]); !slices.Contains(all, "edge-proxy-exporter") {
			return fmt.Sprintf("the user's container is lost: %q", all)
		}
		return ""
	},
})
