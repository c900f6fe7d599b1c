// SPDX-License-Identifier: Apache-2.0

package k8svalidation

import (
	"cmp"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/admitkit/admitkit/internal/k8svalidation/internal/defaults"
)

const notWithoutRestart = "may not be set for init containers without restartPolicy=Always"

func (p *podCheck) checkContainers() {
	spec := p.spec
	at := p.at.Child("containers")
	if len(spec.Containers) == 0 {
		p.required(at, "")
	}
	var ports seen[string]
	for i := range spec.Containers {
		c := containerCheck{p, at.Index(i), &spec.Containers[i]}
		c.check()
		c.hostPorts(&ports)
		c.serving()
	}
	at = p.at.Child("initContainers")
	for i := range spec.InitContainers {
		c := containerCheck{p, at.Index(i), &spec.InitContainers[i]}
		c.check()
		c.hostPorts(new(seen[string]))
		if defaults.IsSidecar(c.container) {
			c.serving()
		} else {
			c.notServing(notWithoutRestart)
		}
	}
	p.ephemeralContainers()
}

func (p *podCheck) ephemeralContainers() {
	for i := range p.spec.EphemeralContainers {
		at := p.at.Child("ephemeralContainers").Index(i)
		e := &p.spec.EphemeralContainers[i]
		c := (*corev1.Container)(&e.EphemeralContainerCommon)
		const no = "cannot be set for an Ephemeral Container"
		shared := containerCheck{p, at, c}
		shared.check()
		shared.notServing(no)
		if c.Ports != nil {
			p.forbidden(at.Child("ports"), no)
		}
		if c.Resources.Limits != nil || c.Resources.Requests != nil {
			p.forbidden(at.Child("resources"), no)
		}
		for j, mount := range c.VolumeMounts {
			if mount.SubPath != "" || mount.SubPathExpr != "" {
				p.forbidden(at.Child("volumeMounts").Index(j).Child("subPath"), no)
			}
		}
		if target := e.TargetContainerName; target != "" && !p.hasContainer(target) {
			p.add(field.NotFound(at.Child("targetContainerName"), target))
		}
	}
}

func (p *podCheck) hasContainer(name string) bool {
	for _, list := range [...][]corev1.Container{p.spec.Containers, p.spec.InitContainers} {
		for i := range list {
			if list[i].Name == name {
				return true
			}
		}
	}
	return false
}

// A containerCheck checks one container of a Pod.
type containerCheck struct {
	*podCheck
	path      *field.Path
	container *corev1.Container
}

// check checks the fields that regular, init and ephemeral containers share.
func (p *containerCheck) check() {
	at, c := p.path, p.container
	if c.Name == "" {
		p.required(at.Child("name"), "")
	} else if bad := badLabel(c.Name); bad != nil {
		p.invalid(at.Child("name"), c.Name, bad...)
	} else if !p.names.add(c.Name) {
		p.duplicate(at.Child("name"), c.Name)
	}
	if c.Image == "" {
		p.required(at.Child("image"), "")
	} else if p.isPod && strings.TrimSpace(c.Image) != c.Image {
		p.invalid(at.Child("image"), c.Image, "must not have leading or trailing whitespace")
	}
	enum(p.checker, at, "imagePullPolicy", c.ImagePullPolicy, corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever)
	enum(p.checker, at, "terminationMessagePolicy", c.TerminationMessagePolicy, corev1.TerminationMessageReadFile, corev1.TerminationMessageFallbackToLogsOnError)
	enumIf(p.checker, at, "restartPolicy", c.RestartPolicy, corev1.ContainerRestartPolicyAlways, corev1.ContainerRestartPolicyNever, corev1.ContainerRestartPolicyOnFailure)
	if len(c.Ports) > 0 {
		p.ports(at.Child("ports"), c.Ports)
	}
	if len(c.Env) > 0 || len(c.EnvFrom) > 0 {
		p.environment()
	}
	if len(c.VolumeMounts) > 0 || len(c.VolumeDevices) > 0 {
		p.mounts()
	}
	p.containerResources(at.Child("resources"), &c.Resources)
	p.resizePolicies(at.Child("resizePolicy"), c.ResizePolicy)
	p.containerSecurity(at.Child("securityContext"), c.SecurityContext)
}

func (p *containerCheck) ports(at *field.Path, ports []corev1.ContainerPort) {
	var names seen[string]
	for i := range ports {
		port := &ports[i]
		if port.Name != "" {
			if bad := validation.IsValidPortName(port.Name); bad != nil {
				p.invalid(at.Index(i).Child("name"), port.Name, bad...)
			} else if !names.add(port.Name) {
				p.duplicate(at.Index(i).Child("name"), port.Name)
			}
		}
		if port.ContainerPort == 0 {
			p.required(at.Index(i).Child("containerPort"), "")
		} else {
			p.portNumber(at.Index(i), "containerPort", port.ContainerPort)
		}
		if port.HostPort != 0 {
			p.portNumber(at.Index(i), "hostPort", port.HostPort)
		}
		p.protocol(at.Index(i), port.Protocol)
	}
}

func (c *checker) portNumber(at *field.Path, child string, n int32) {
	if n < 1 || n > 65535 {
		c.invalid(at.Child(child), n, validation.InclusiveRangeError(1, 65535))
	}
}

func (c *checker) protocol(at *field.Path, protocol corev1.Protocol) {
	enum(c, at, "protocol", protocol, corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP)
}

// hostPorts adds the host ports of the container to taken, and an error for each port that taken already has.
func (p *containerCheck) hostPorts(taken *seen[string]) {
	for i := range p.container.Ports {
		port := &p.container.Ports[i]
		if port.HostPort == 0 {
			continue
		}
		protocol := cmp.Or(port.Protocol, corev1.ProtocolTCP)
		key := string(protocol) + "/" + port.HostIP + "/" + strconv.Itoa(int(port.HostPort))
		if !taken.add(key) {
			p.duplicate(p.path.Child("ports").Index(i).Child("hostPort"), key)
		}
	}
}

// mounts checks that each mount names a volume and has a unique path. A volume may have several
// mounts.
func (p *containerCheck) mounts() {
	at, c := p.path, p.container
	var names, paths, devices, devicePaths seen[string]
	list := at.Child("volumeMounts")
	for i := range c.VolumeMounts {
		m := &c.VolumeMounts[i]
		names.add(m.Name)
		if m.Name == "" {
			p.required(list.Index(i).Child("name"), "")
		} else if p.volumes[m.Name] == nil {
			p.add(field.NotFound(list.Index(i).Child("name"), m.Name))
		}
		if m.MountPath == "" {
			p.required(list.Index(i).Child("mountPath"), "")
		}
		if !paths.add(m.MountPath) {
			p.invalid(list.Index(i).Child("mountPath"), m.MountPath, "must be unique")
		}
		p.mountOptions(list.Index(i), m)
	}
	list = at.Child("volumeDevices")
	for i, d := range c.VolumeDevices {
		if d.Name == "" {
			p.required(list.Index(i).Child("name"), "")
		} else if v := p.volumes[d.Name]; v == nil {
			p.add(field.NotFound(list.Index(i).Child("name"), d.Name))
		} else if v.PersistentVolumeClaim == nil && v.Ephemeral == nil {
			p.invalid(list.Index(i).Child("name"), d.Name, "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode")
		}
		if !devices.add(d.Name) || names.has(d.Name) {
			p.invalid(list.Index(i).Child("name"), d.Name, "must be unique")
		}
		if d.DevicePath == "" {
			p.required(list.Index(i).Child("devicePath"), "")
		} else if !devicePaths.add(d.DevicePath) || paths.has(d.DevicePath) {
			p.invalid(list.Index(i).Child("devicePath"), d.DevicePath, "must be unique")
		}
		if stepsBack(d.DevicePath) {
			p.invalid(list.Index(i).Child("devicePath"), d.DevicePath, "can not contain backsteps ('..')")
		}
	}
}

func (p *containerCheck) mountOptions(at *field.Path, m *corev1.VolumeMount) {
	p.descending(at, "subPath", m.SubPath)
	p.descending(at, "subPathExpr", m.SubPathExpr)
	if m.SubPath != "" && m.SubPathExpr != "" {
		p.invalid(at.Child("subPathExpr"), m.SubPathExpr, "subPathExpr and subPath are mutually exclusive")
	}
	enumIf(p.checker, at, "mountPropagation", m.MountPropagation, corev1.MountPropagationNone, corev1.MountPropagationHostToContainer, corev1.MountPropagationBidirectional)
	if m.MountPropagation != nil && *m.MountPropagation == corev1.MountPropagationBidirectional && !isPrivileged(p.container) {
		p.forbidden(at.Child("mountPropagation"), "Bidirectional mount propagation is available only to privileged containers")
	}
	enumIf(p.checker, at, "recursiveReadOnly", m.RecursiveReadOnly, corev1.RecursiveReadOnlyDisabled, corev1.RecursiveReadOnlyIfPossible, corev1.RecursiveReadOnlyEnabled)
	if m.RecursiveReadOnly == nil || *m.RecursiveReadOnly == corev1.RecursiveReadOnlyDisabled {
		return
	}
	if !m.ReadOnly {
		p.forbidden(at.Child("recursiveReadOnly"), "may only be specified when readOnly is true")
	}
	if m.MountPropagation != nil && *m.MountPropagation != corev1.MountPropagationNone {
		p.forbidden(at.Child("recursiveReadOnly"), "may only be specified when mountPropagation is None or not specified")
	}
}

func isPrivileged(c *corev1.Container) bool {
	return c.SecurityContext != nil && c.SecurityContext.Privileged != nil && *c.SecurityContext.Privileged
}

// descending checks that a path is relative and does not leave its folder.
func (c *checker) descending(at *field.Path, child, path string) {
	if strings.HasPrefix(path, "/") {
		c.invalid(at.Child(child), path, "must be a relative path")
	}
	if stepsBack(path) {
		c.invalid(at.Child(child), path, "must not contain '..'")
	}
}

func stepsBack(path string) bool {
	for part := range strings.SplitSeq(path, "/") {
		if part == ".." {
			return true
		}
	}
	return false
}
