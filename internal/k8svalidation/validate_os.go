// SPDX-License-Identifier: Apache-2.0

package k8svalidation

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	notOnWindows = "cannot be set for a windows pod"
	notOnLinux   = "windows options cannot be set for a linux pod"
)

// checkOS rejects settings that the operating system of the Pod does not support.
func (p *podCheck) checkOS() {
	p.hostProcess()
	os := p.spec.OS
	if os == nil {
		return
	}
	switch os.Name {
	case corev1.Linux:
		p.linux()
	case corev1.Windows:
		p.windows()
	case "":
		p.required(p.at.Child("os", "name"), "")
	default:
		p.add(field.NotSupported(p.at.Child("os"), os.Name, []corev1.OSName{corev1.Linux, corev1.Windows}))
	}
}

// eachContainer calls f for regular, init and ephemeral containers.
func (p *podCheck) eachContainer(f func(at *field.Path, c *corev1.Container)) {
	for i := range p.spec.InitContainers {
		f(p.at.Child("initContainers").Index(i), &p.spec.InitContainers[i])
	}
	for i := range p.spec.Containers {
		f(p.at.Child("containers").Index(i), &p.spec.Containers[i])
	}
	for i := range p.spec.EphemeralContainers {
		f(p.at.Child("ephemeralContainers").Index(i), (*corev1.Container)(&p.spec.EphemeralContainers[i].EphemeralContainerCommon))
	}
}

func (p *podCheck) linux() {
	if s := p.spec.SecurityContext; s != nil && s.WindowsOptions != nil {
		p.forbidden(p.at.Child("securityContext", "windowsOptions"), notOnLinux)
	}
	p.eachContainer(func(at *field.Path, c *corev1.Container) {
		if s := c.SecurityContext; s != nil && s.WindowsOptions != nil {
			p.forbidden(at.Child("securityContext", "windowsOptions"), notOnLinux)
		}
	})
}

type setting struct {
	name string
	set  bool
}

func (p *podCheck) unsettable(at *field.Path, settings ...setting) {
	for _, s := range settings {
		if s.set {
			p.forbidden(at.Child(s.name), notOnWindows)
		}
	}
}

func (p *podCheck) windows() {
	spec := p.spec
	p.unsettable(p.at, setting{"hostUsers", spec.HostUsers != nil}, setting{"hostPID", spec.HostPID}, setting{"hostIPC", spec.HostIPC},
		setting{"shareProcessNamespace", spec.ShareProcessNamespace != nil})
	if s := spec.SecurityContext; s != nil {
		p.unsettable(p.at.Child("securityContext"), setting{"appArmorProfile", s.AppArmorProfile != nil},
			setting{"seLinuxOptions", s.SELinuxOptions != nil}, setting{"seccompProfile", s.SeccompProfile != nil},
			setting{"fsGroup", s.FSGroup != nil}, setting{"fsGroupChangePolicy", s.FSGroupChangePolicy != nil},
			setting{"sysctls", len(s.Sysctls) > 0}, setting{"runAsUser", s.RunAsUser != nil}, setting{"runAsGroup", s.RunAsGroup != nil},
			setting{"supplementalGroups", s.SupplementalGroups != nil}, setting{"supplementalGroupsPolicy", s.SupplementalGroupsPolicy != nil},
			setting{"seLinuxChangePolicy", s.SELinuxChangePolicy != nil})
	}
	p.eachContainer(func(at *field.Path, c *corev1.Container) {
		s := c.SecurityContext
		if s == nil {
			return
		}
		p.unsettable(at.Child("securityContext"), setting{"appArmorProfile", s.AppArmorProfile != nil},
			setting{"seLinuxOptions", s.SELinuxOptions != nil}, setting{"seccompProfile", s.SeccompProfile != nil},
			setting{"capabilities", s.Capabilities != nil}, setting{"readOnlyRootFilesystem", s.ReadOnlyRootFilesystem != nil},
			setting{"privileged", s.Privileged != nil}, setting{"allowPrivilegeEscalation", s.AllowPrivilegeEscalation != nil},
			setting{"procMount", s.ProcMount != nil}, setting{"runAsUser", s.RunAsUser != nil}, setting{"runAsGroup", s.RunAsGroup != nil})
	})
}

// hostProcess checks that either all containers or no containers are Windows host processes.
func (p *podCheck) hostProcess() {
	var ofPod *bool
	if s := p.spec.SecurityContext; s != nil && s.WindowsOptions != nil {
		ofPod = s.WindowsOptions.HostProcess
	}
	all, hosted := 0, 0
	p.eachContainer(func(at *field.Path, c *corev1.Container) {
		all++
		own := ofPod
		if s := c.SecurityContext; s != nil && s.WindowsOptions != nil && s.WindowsOptions.HostProcess != nil {
			if own = s.WindowsOptions.HostProcess; ofPod != nil && *ofPod != *own {
				p.invalid(at.Child("securityContext", "windowsOptions", "hostProcess"), *own, "pod hostProcess value must be identical if both are specified")
			}
		}
		if own != nil && *own {
			hosted++
		}
	})
	if hosted == 0 {
		return
	}
	if hosted != all {
		p.invalid(p.at, "", "If pod contains any hostProcess containers then all containers must be HostProcess containers")
	}
	if !p.spec.HostNetwork {
		p.invalid(p.at.Child("hostNetwork"), false, "hostNetwork must be true if pod contains any hostProcess containers")
	}
}
