// SPDX-License-Identifier: Apache-2.0

package k8svalidation

import (
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// checkHost checks the settings of a Pod that concern its host.
func (p *podCheck) checkHost() {
	spec := p.spec
	p.hostnameOverride()
	if spec.HostUsers == nil || *spec.HostUsers {
		return
	}
	const no = "when `hostUsers` is false"
	if spec.HostNetwork {
		p.forbidden(p.at.Child("hostNetwork"), no)
	}
	if spec.HostPID {
		p.forbidden(p.at.Child("HostPID"), no) // the API server also uses this spelling
	}
	if spec.HostIPC {
		p.forbidden(p.at.Child("HostIPC"), no)
	}
	p.eachContainer(func(at *field.Path, c *corev1.Container) {
		if len(c.VolumeDevices) > 0 && !p.isUpdate {
			p.forbidden(at.Child("volumeDevices"), no)
		}
	})
}

// mostHostname is the maximum length of a host name in Linux.
const mostHostname = 64

func (p *podCheck) hostnameOverride() {
	name, at := p.spec.HostnameOverride, p.at.Child("hostnameOverride")
	if name == nil {
		return
	}
	if fqdn := p.spec.SetHostnameAsFQDN; fqdn != nil && *fqdn {
		p.forbidden(at, "may not be specified when setHostnameAsFQDN is true")
	}
	if p.spec.HostNetwork {
		p.forbidden(at, "may not be specified when hostNetwork is true")
	}
	if len(*name) > mostHostname {
		p.add(field.TooLong(at, "", mostHostname))
	}
	p.invalid(at, *name, badSubdomain(*name)...)
}

func (p *podCheck) appArmor(at *field.Path, s *corev1.AppArmorProfile) {
	if s == nil {
		return
	}
	at = at.Child("appArmorProfile")
	const mustBeSet, longest = "must be set when AppArmor type is Localhost", 4095
	local, name := s.LocalhostProfile, at.Child("localhostProfile")
	switch {
	case s.Type == "":
		p.required(at.Child("type"), "type is required when appArmorProfile is set")
	case s.Type != corev1.AppArmorProfileTypeLocalhost:
		enum(p.checker, at, "type", s.Type, corev1.AppArmorProfileTypeRuntimeDefault, corev1.AppArmorProfileTypeUnconfined)
		if local != nil {
			p.invalid(name, *local, "can only be set when AppArmor type is Localhost")
		}
	case local == nil || *local == "":
		p.required(name, mustBeSet)
	case strings.TrimSpace(*local) != *local:
		p.invalid(name, *local, "must not be padded with whitespace")
	case len(*local) > longest:
		p.add(field.TooLong(name, "", longest))
	}
}

var sysctlName = regexp.MustCompile(`^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$`)

func (p *podCheck) sysctls(at *field.Path, list []corev1.Sysctl) {
	var names seen[string]
	for i, s := range list {
		name := at.Index(i).Child("name")
		switch {
		case s.Name == "":
			p.required(name, "")
		case len(s.Name) > 253 || !sysctlName.MatchString(s.Name):
			p.invalid(name, s.Name, "must be the name of a sysctl")
		case !names.add(s.Name):
			p.duplicate(name, s.Name)
		}
		switch ns := sysctlNamespace(s.Name); {
		case p.isUpdate: // an older Pod may have such a sysctl
		case ns == "net" && p.spec.HostNetwork:
			p.invalid(name, s.Name, "may not be specified when 'hostNetwork' is true")
		case ns == "ipc" && p.spec.HostIPC:
			p.invalid(name, s.Name, "may not be specified when 'hostIPC' is true")
		}
	}
}

// sysctlNamespace returns the kernel namespace of a sysctl, if it is known.
func sysctlNamespace(name string) string {
	// The API server reads slashes as dots, unless the first separator is a dot.
	if i := strings.IndexAny(name, "./"); i >= 0 && name[i] == '/' {
		name = strings.NewReplacer(".", "/", "/", ".").Replace(name)
	}
	switch name {
	case "kernel.sem", "kernel.shmall", "kernel.shmmax", "kernel.shmmni", "kernel.shm_rmid_forced", "kernel.shm",
		"kernel.msgmax", "kernel.msgmnb", "kernel.msgmni", "kernel.msg":
		return "ipc"
	}
	switch {
	case strings.HasPrefix(name, "net."):
		return "net"
	case strings.HasPrefix(name, "fs.mqueue."):
		return "ipc"
	}
	return ""
}
