// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/pkg/review"
)

// C01 to C12: correct webhooks that inject containers, volumes and tokens.

func correctInjectors() []Case {
	return []Case{
		onPods("C01 mesh proxy as a native sidecar, with a projected token", meshProxy),
		podCase("C02 proxy as the first container, without types", ofHandler(mapped(proxyFirst))).
			samples(simplePod(map[string]string{"proxy.example.com/inject": "enabled"})),
		onPods("C03 secrets agent in memory", secretsAgent).
			samples(simplePod(map[string]string{"secrets.example.com/inject": "true"})),
		onPods("C04 runtime sidecar, its port from an annotation", runtimeSidecar).
			samples(simplePod(map[string]string{"runtime.example.com/enabled": "true", "runtime.example.com/app-port": "3000"})),
		onPods("C05 instrumentation: init container, volume, JAVA_TOOL_OPTIONS", instrumented),
		onPods("C06 workload identity for labelled Pods", workloadIdentity).
			registered(onlyLabelled("identity.example.com/use", "true")).
			samples(labelledPod("identity.example.com/use", "true")),
		podCase("C07 annotation of attached networks, operations by hand", ofHandler(byHand(attachedNetwork))).
			samples(simplePod(map[string]string{"k8s.v1.cni.cncf.io/networks": "macvlan@eth1, storage/fast"})),
		onPods("C08 log shipper with a shared emptyDir", logShipper),
		onPods("C09 probes through the agent, the original ports in one annotation", probesThroughAgent).samples(probedPod()),
		podCase("C10 init container before all others, operations by hand", ofHandler(byHand(initFirst))),
		onPods("C11 certificates of the private CA, mounted read-only", caMounted),
		podCase("C12 pull secret, operations by hand, v1beta1 only", ofHandler(byHand(pullSecret))).
			registered(onlyVersion("v1beta1")).registered(neverReinvoked),
	}
}

const (
	meshPort  = 15006
	meshToken = "mesh-token"
)

// projectedToken returns a volume with a service account token for the audience.
func projectedToken(name, audience string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
		DefaultMode: ptr.To[int32](0o644),
		Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{
			Audience: audience, ExpirationSeconds: ptr.To[int64](43200), Path: "token",
		}}},
	}}}
}

// meshProxy inserts a native sidecar at the front of the init containers, once, and skips Pods that
// opted out.
func meshProxy(_ *review.Request, p *corev1.Pod) error {
	if p.Spec.HostNetwork || p.Annotations["mesh.example.com/inject"] == "false" {
		return nil
	}
	if err := ensureVolume(p, projectedToken(meshToken, "mesh-ca")); err != nil {
		return err
	}
	annotate(p, "mesh.example.com/revision", "1-24")
	if nameTaken(p, "mesh-proxy") {
		return nil
	}
	proxy := corev1.Container{
		Name: "mesh-proxy", Image: "registry.example.com/mesh/proxy:1.24", Args: []string{"proxy", "sidecar"},
		RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways),
		Env: []corev1.EnvVar{{Name: "POD_NAME", ValueFrom: &corev1.EnvVarSource{
			FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.name"},
		}}},
		Ports:        []corev1.ContainerPort{{Name: "mesh-in", ContainerPort: meshPort, Protocol: corev1.ProtocolTCP}},
		VolumeMounts: []corev1.VolumeMount{{Name: meshToken, MountPath: "/var/run/secrets/mesh", ReadOnly: true}},
		StartupProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/ready", Port: intstr.FromInt32(15021)}}},
	}
	if !isWindows(p) {
		proxy.SecurityContext = userOf(agentUser)
	}
	p.Spec.InitContainers = slices.Insert(p.Spec.InitContainers, 0, proxy)
	return nil
}

// proxyFirst inserts its container before all others, once. If the container is moved later, it stays there.
var proxyFirst = changes(func(doc tree) {
	if textAt(doc, "metadata", "annotations", "proxy.example.com/inject") != "enabled" {
		return
	}
	at(doc, "metadata", "labels")["proxy.example.com/workload-ns"] = "default"
	for _, list := range []string{"containers", "initContainers", "ephemeralContainers"} {
		for _, c := range objectsAt(doc, "spec", list) {
			if c["name"] == "proxy" {
				return
			}
		}
	}
	containers, _ := member[[]any](doc, "spec", "containers")
	at(doc, "spec")["containers"] = slices.Insert(slices.Clone(containers), 0, any(tree{
		"name": "proxy", "image": "registry.example.com/proxy:2.14",
		"lifecycle": tree{"postStart": tree{"exec": tree{"command": []any{"/usr/bin/await"}}}},
	}))
})

// secretsAgent adds an init container, a container and an in-memory volume, each only if it is
// missing.
func secretsAgent(_ *review.Request, p *corev1.Pod) error {
	if p.Annotations["secrets.example.com/inject"] != "true" {
		return nil
	}
	shared := corev1.Volume{Name: "agent-secrets", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}}}
	if !nameTaken(p, "secrets-init") {
		p.Spec.InitContainers = slices.Insert(p.Spec.InitContainers, 0, corev1.Container{Name: "secrets-init", Image: "registry.example.com/secrets:1.18", Args: []string{"-once"}})
	}
	if !nameTaken(p, "secrets-agent") {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "secrets-agent", Image: "registry.example.com/secrets:1.18"})
	}
	return ensureMounted(p, shared, "/run/agent-secrets")
}

// runtimeSidecar reads the port from an annotation in every call, so the sidecar follows the user's
// changes.
func runtimeSidecar(_ *review.Request, p *corev1.Pod) error {
	if p.Annotations["runtime.example.com/enabled"] != "true" {
		return nil
	}
	port := p.Annotations["runtime.example.com/app-port"]
	if port == "" {
		port = "8080"
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return denial("runtime.example.com/app-port is not a port: " + port)
	}
	if !nameTaken(p, "runtime") {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "runtime", Image: "registry.example.com/runtime:1.15"})
	}
	if c := container(p, "runtime"); c != nil {
		setEnvValue(c, "APP_PORT", port)
	}
	for _, c := range appContainers(p) {
		ensureEnv(c, "RUNTIME_HTTP_PORT", "3500")
	}
	return nil
}

// instrumented extends JAVA_TOOL_OPTIONS, but only where its option is missing.
func instrumented(_ *review.Request, p *corev1.Pod) error {
	const jar = "-javaagent:/otel/javaagent.jar"
	if isWindows(p) {
		return nil
	}
	volume := corev1.Volume{Name: "otel-java", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: ptr.To(resource.MustParse("200Mi"))}}}
	if !nameTaken(p, "otel-java-copy") {
		p.Spec.InitContainers = append(p.Spec.InitContainers, corev1.Container{
			Name: "otel-java-copy", Image: "registry.example.com/otel/java:2.9", Command: []string{"cp", "/javaagent.jar", "/otel/javaagent.jar"},
		})
	}
	if err := ensureMounted(p, volume, "/otel"); err != nil {
		return err
	}
	for _, c := range appContainers(p) {
		e := findEnv(c, "JAVA_TOOL_OPTIONS")
		switch {
		case e == nil:
			ensureEnv(c, "JAVA_TOOL_OPTIONS", jar)
		case e.ValueFrom == nil && !slices.Contains(strings.Fields(e.Value), jar):
			e.Value = extended(e.Value, jar)
		}
	}
	return nil
}

// workloadIdentity mounts a token and sets variables, each only where it is missing.
func workloadIdentity(_ *review.Request, p *corev1.Pod) error {
	if err := ensureMounted(p, projectedToken("identity-token", "api://exchange"), "/var/run/secrets/identity"); err != nil {
		return err
	}
	for _, c := range everyContainer(p) {
		ensureEnv(c, "IDENTITY_AUTHORITY", "https://login.example.com/")
		ensureEnv(c, "IDENTITY_TOKEN_FILE", "/var/run/secrets/identity/token")
	}
	return nil
}

// attachedNetwork adds its network to a list that other webhooks also extend, unless the list has it.
func attachedNetwork(_ *admissionv1.AdmissionRequest, doc tree) ([]op, error) {
	const key, network = "k8s.v1.cni.cncf.io/networks", "mesh-cni"
	annotations, _ := member[tree](doc, "metadata", "annotations")
	value, _ := annotations[key].(string)
	for _, n := range strings.Split(value, ",") {
		if strings.TrimSpace(n) == network {
			return nil, nil
		}
	}
	if strings.TrimSpace(value) != "" {
		value += ","
	}
	if strings.HasPrefix(strings.TrimSpace(value), "[") {
		return nil, denial("networks in the form of a list are not supported")
	}
	var ops []op
	if annotations == nil {
		ops = append(ops, op{Op: "add", Path: "/metadata/annotations", Value: tree{}})
	}
	return append(ops, op{Op: "add", Path: "/metadata/annotations/" + pointerToken(key), Value: strings.TrimSpace(value) + network}), nil
}

// logShipper adds a container and shares a volume with it, each only if it is missing.
func logShipper(_ *review.Request, p *corev1.Pod) error {
	if !nameTaken(p, "log-shipper") {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "log-shipper", Image: "registry.example.com/fluent:3"})
	}
	if err := ensureVolume(p, emptyDir("app-logs")); err != nil {
		return err
	}
	for _, c := range appContainers(p) {
		if err := ensureMount(c, corev1.VolumeMount{Name: "app-logs", MountPath: "/var/log/app"}); err != nil {
			return err
		}
	}
	return nil
}

// probesThroughAgent replaces the ports of probes and stores the original ports in an annotation. It skips probes that
// already have its port. If it cannot decode the annotation, it overwrites it.
func probesThroughAgent(_ *review.Request, p *corev1.Pod) error {
	const key = "agent.example.com/probed-ports"
	var ports map[string]string
	if json.Unmarshal([]byte(p.Annotations[key]), &ports) != nil || ports == nil {
		ports = map[string]string{}
	}
	before := maps.Clone(ports)
	for _, c := range appContainers(p) {
		if c.LivenessProbe == nil || c.LivenessProbe.HTTPGet == nil || c.LivenessProbe.HTTPGet.Port == intstr.FromInt32(15020) {
			continue
		}
		ports[c.Name] = c.LivenessProbe.HTTPGet.Port.String()
		c.LivenessProbe.HTTPGet.Port = intstr.FromInt32(15020)
	}
	if maps.Equal(before, ports) {
		return nil
	}
	text, err := json.Marshal(ports) // sorts the names
	if err != nil {
		return err
	}
	annotate(p, key, string(text))
	return nil
}

// initFirst inserts its init container before all others, once. If the container is moved later, it stays there.
func initFirst(_ *admissionv1.AdmissionRequest, doc tree) ([]op, error) {
	for _, list := range []string{"initContainers", "containers", "ephemeralContainers"} {
		for _, c := range objectsAt(doc, "spec", list) {
			if c["name"] == "net-init" {
				return nil, nil
			}
		}
	}
	own := tree{"name": "net-init", "image": "registry.example.com/net-init:1", "args": []string{"-p", "15001"}}
	if list, _ := member[[]any](doc, "spec", "initContainers"); len(list) > 0 {
		return []op{{Op: "add", Path: "/spec/initContainers/0", Value: own}}, nil
	}
	return []op{{Op: "add", Path: "/spec/initContainers", Value: []any{own}}}, nil
}

// caMounted mounts certificates, but skips a container that has its own mount at the path.
var caMounted = inOrder(ensuresVolume(configVolume("private-ca", "ca-bundle")), changesContainers(func(c *corev1.Container) {
	_ = ensureMount(c, corev1.VolumeMount{Name: "private-ca", MountPath: "/etc/ssl/private-ca", ReadOnly: true})
	ensureEnv(c, "SSL_CERT_DIR", "/etc/ssl/certs:/etc/ssl/private-ca")
}))

// pullSecret adds its pull secret to the list, or adds the list.
func pullSecret(_ *admissionv1.AdmissionRequest, doc tree) ([]op, error) {
	own := tree{"name": "registry-mirror"}
	secrets := objectsAt(doc, "spec", "imagePullSecrets")
	if slices.ContainsFunc(secrets, func(s tree) bool { return s["name"] == own["name"] }) {
		return nil, nil
	}
	if len(secrets) == 0 {
		return []op{{Op: "add", Path: "/spec/imagePullSecrets", Value: []any{own}}}, nil
	}
	return []op{{Op: "add", Path: "/spec/imagePullSecrets/-", Value: own}}, nil
}
