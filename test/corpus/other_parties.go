// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"encoding/json"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/admitkit/admitkit/pkg/review"
)

// M45 to M58: webhooks that fail because of other parties: other webhooks, other users, and other objects or elements.

func otherPartyPatterns() []Case {
	return []Case{
		podCase("M45 remembers Pods by their name", remembersByName(false)).breaks("L3"),
		podCase("M46 keeps the Pod of the last request", keepsLastPod(false)).breaks("L3"),
		onPods("M47 takes every system user for a service account", namesTheAccount(false)).breaks("L2"),
		onDeployments("M48 adds its container on CREATE only", onCreate(sidecarIfAbsent)).breaks("L6"),
		onDeployments("M49 takes the old object as proof", trustsOldObject).breaks("L6"),
		onPods("M50 mounts a volume named after the Pod", mountsNamed(false)).breaks("L4a"),
		onPods("M51 mounts a volume named after the Pod or its prefix", mountsNamed(true)).breaks("L12"),
		onPods("M52 puts the registry of the first call into a variable", registryVariable(false)).breaks("L11"),
		onPods("M53 looks for its wrapper in the first place only", prefixesCommand(false)).breaks("L12"),
		widgetCase("M54 writes all fields of its type", zeroFields(false)).breaks("L11"),
		triggered("M55 writes an empty value for one of its profiles", profiled(), notesClass(true)).breaks("L11"),
		onPods("M56 numbers the containers", givesPorts(func(i int, _ string) int { return i })).breaks("L4b"),
		onPods("M57 names volumes after a hash of four bits", mountsScratch(1)).breaks("L5"),
		onPods("M58 configures the first container in every call", configuresFirst).breaks("L4b"),
	}
}

func otherPartyLookalikes() []Case {
	return []Case{
		podCase("M45 remembers Pods by their content", remembersByName(true)),
		podCase("M46 keeps no Pod", keepsLastPod(true)),
		onPods("M47 tells service accounts from other users", namesTheAccount(true)),
		onDeployments("M48 adds its container in each request", sidecarIfAbsent),
		onDeployments("M49 keeps a value of the old object", keepsOldPort),
		onPods("M50 mounts a volume named after the Pod unless the path is taken", unless(nameless, mountsUnlessTaken)),
		onPods("M52 puts the registry into a variable in each call", registryVariable(true)),
		onPods("M53 looks for its wrapper everywhere", prefixesCommand(true)),
		onPods("M53 takes images from its own mirror", fromOwnMirror),
		widgetCase("M54 sets a number to 0 if it is absent", zeroFields(true)),
		triggered("M55 writes only the values that its profiles have", profiled(), notesClass(false)),
		onPods("M56 derives the port of a container from its name", givesPorts(func(_ int, name string) int { return len(name) })),
		onPods("M57 names volumes after a hash", mountsScratch(8)),
	}
}

// remembersByName counts the containers of each Pod and remembers the number by the name of the Pod, or by its content.
func remembersByName(content bool) func() http.Handler {
	return func() http.Handler {
		var known sync.Map
		return pods(func(r *review.Request, p *corev1.Pod) error {
			if nameless(p) {
				return nil
			}
			var key strings.Builder
			key.WriteString(r.Namespace + "/" + p.Name)
			for _, c := range p.Spec.Containers {
				if content {
					key.WriteString(" " + c.Name + " " + c.Image)
				}
			}
			first := ""
			for _, c := range p.Spec.Containers {
				first += c.Image
			}
			value, _ := known.LoadOrStore(key.String(), hash(first))
			annotate(p, "scan.example.com/of-images", value.(string))
			return nil
		})
	}
}

// keepsLastPod keeps the Pod of a request in a field of the handler while it handles the request. If local is false, a
// request at the same time replaces that Pod.
func keepsLastPod(local bool) func() http.Handler {
	return func() http.Handler {
		var last atomic.Pointer[string]
		return pods(func(_ *review.Request, p *corev1.Pod) error {
			images := p.Spec.Containers[0].Image
			last.Store(&images)
			runtime.Gosched() // other requests run here, as during a call to another server
			if !local {
				images = *last.Load()
			}
			annotate(p, "scan.example.com/first-image", images)
			return nil
		})
	}
}

// namesTheAccount adds the name of the service account that creates the Pod. If account is false, it takes every user
// whose name begins with system: for one.
func namesTheAccount(account bool) edit {
	return func(r *review.Request, p *corev1.Pod) error {
		setKey(&p.Labels, "agent/seen", "yes")
		user := r.UserInfo.Username
		if account && !strings.HasPrefix(user, "system:serviceaccount:") || !strings.HasPrefix(user, "system:") {
			return nil
		}
		setKey(&p.Labels, "agent/account", strings.Split(user, ":")[3])
		return nil
	}
}

// configuresFirst sets a variable in the container that is first when the webhook is called. If a container was inserted
// before it since the last call, a second container gets the variable.
func configuresFirst(_ *review.Request, p *corev1.Pod) error {
	return firstConfiguredWith(p, "AGENT_PORT", "15000")
}

// trustsOldObject adds its container, unless the old object of an update has it.
func trustsOldObject(r *review.Request, p *corev1.Pod) error {
	if r.Operation == admissionv1.Update && strings.Contains(string(r.OldObject), sidecar().Image) {
		return nil
	}
	return sidecarIfAbsent(r, p)
}

// keepsOldPort adds a variable with a port. On UPDATE it takes the port from the old object, if that has one.
func keepsOldPort(r *review.Request, p *corev1.Pod) error {
	port := "15000"
	if r.Operation == admissionv1.Update {
		var old struct {
			Spec struct{ Template corev1.PodTemplateSpec }
		}
		if err := json.Unmarshal(r.OldObject, &old); err != nil {
			return err
		}
		for _, c := range old.Spec.Template.Spec.Containers {
			if e := findEnv(&c, "AGENT_PORT"); e != nil {
				port = e.Value
			}
		}
	}
	for _, c := range appContainers(p) {
		ensureEnv(c, "AGENT_PORT", port)
	}
	return nil
}

func nameless(p *corev1.Pod) bool { return p.Name == "" }

// mountsNamed mounts a volume that is named after the Pod, unless the container mounts that volume. If prefix is true,
// a Pod without a name gets the volume cfg. Otherwise it gets none.
func mountsNamed(prefix bool) edit {
	return func(_ *review.Request, p *corev1.Pod) error {
		name := "cfg"
		if !nameless(p) {
			name = "cfg-" + hash(p.Name)[:8]
		} else if !prefix {
			return nil
		}
		if !hasVolume(p, name) {
			addVolume(p, emptyDir(name))
		}
		for _, c := range everyContainer(p) {
			if !mountsVolume(c, name) {
				addMount(c, corev1.VolumeMount{Name: name, MountPath: "/agent-cfg"})
			}
		}
		return nil
	}
}

func pathTaken(c *corev1.Container, at string) bool {
	return slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return samePath(m.MountPath, at) }) ||
		slices.ContainsFunc(c.VolumeDevices, func(d corev1.VolumeDevice) bool { return samePath(d.DevicePath, at) })
}

// mountsUnlessTaken mounts a volume that is named after the Pod, unless something is mounted at the path.
func mountsUnlessTaken(_ *review.Request, p *corev1.Pod) error {
	name := "cfg-" + hash(p.Name)[:8]
	for _, c := range everyContainer(p) {
		if pathTaken(c, "/agent-cfg") {
			continue
		}
		if err := ensureVolume(p, emptyDir(name)); err != nil {
			return err
		}
		addMount(c, corev1.VolumeMount{Name: name, MountPath: "/agent-cfg"})
	}
	return nil
}

// registryVariable puts the registry of each image into a variable: in each call, or only if the variable is missing.
func registryVariable(always bool) edit {
	return changesAppContainers(func(c *corev1.Container) {
		registry := "none"
		if at := strings.LastIndexByte(c.Image, '/'); at > 0 {
			registry = c.Image[:at]
		}
		if always {
			setEnv(c, "AGENT_REGISTRY", registry)
			return
		}
		ensureEnv(c, "AGENT_REGISTRY", registry)
	})
}

// prefixesCommand puts its program before the command of each container. If everywhere is false, it looks for the
// program only in the first place.
func prefixesCommand(everywhere bool) edit {
	const program = "/agent/run"
	return changesAppContainers(func(c *corev1.Container) {
		if len(c.Command) == 0 || c.Command[0] == program || everywhere && slices.Contains(c.Command, program) {
			return
		}
		c.Command = slices.Insert(c.Command, 0, program)
	})
}

// fromOwnMirror takes each image from its own mirror, as other webhooks do from theirs.
var fromOwnMirror = changesAppContainers(func(c *corev1.Container) {
	if !strings.HasPrefix(c.Image, "mirror.agent.example.com/") {
		c.Image = "mirror.agent.example.com/" + c.Image
	}
})

// zeroFields annotates a Widget. It also sets one absent number to 0 if single is true, or else all absent fields to
// their zero values.
func zeroFields(single bool) handler {
	return mapped(func(_ *review.Request, doc tree) error {
		at(doc, "metadata", "annotations")["agent/seen"] = "yes"
		spec := at(doc, "spec")
		for name, zero := range map[string]any{"options": "", "tags": tree{}, "retries": json.Number("0")} {
			if _, ok := spec[name]; !ok && single == (name == "retries") {
				spec[name] = zero
			}
		}
		return nil
	})
}

// classes are the classes of Pods by their profile. The profile batch has none.
var classes = map[string]string{"online": "gold", "batch": ""}

func profiled() *corev1.Pod {
	return podWith(map[string]string{"profile.example.com/name": "batch"}, nil)
}

// notesClass notes the class of a Pod's profile in an annotation. If empty is set, it also notes an empty class, so
// that another webhook cannot fill the annotation where it is absent.
func notesClass(empty bool) func() http.Handler {
	return func() http.Handler {
		return typed(func(_ *review.Request, p *corev1.Pod) error {
			class, known := classes[p.Annotations["profile.example.com/name"]]
			if !known {
				return nil
			}
			if _, noted := p.Annotations["profile.example.com/class"]; !noted && (empty || class != "") {
				annotate(p, "profile.example.com/class", class)
			}
			annotate(p, "profile.example.com/seen", "yes")
			return nil
		})
	}
}

// givesPorts gives each container a port, unless it has one. number returns a number for the index and the name of a
// container.
func givesPorts(number func(i int, name string) int) edit {
	return changes(func(p *corev1.Pod) {
		for i := range p.Spec.Containers {
			c := &p.Spec.Containers[i]
			if findEnv(c, "ADMIN_PORT") == nil {
				setEnv(c, "ADMIN_PORT", strconv.Itoa(9000+number(i, c.Name)))
			}
		}
	})
}

// mountsScratch mounts a volume of its own in each container, unless the path is taken. The name of the volume has the
// first digits of a hash of the container's name.
func mountsScratch(digits int) edit {
	return func(_ *review.Request, p *corev1.Pod) error {
		for _, c := range appContainers(p) {
			if pathTaken(c, "/agent-scratch") {
				continue
			}
			name := "scratch-" + hash(c.Name)[:digits]
			if err := ensureVolume(p, emptyDir(name)); err != nil {
				return err
			}
			addMount(c, corev1.VolumeMount{Name: name, MountPath: "/agent-scratch"})
		}
		return nil
	}
}
