// SPDX-License-Identifier: Apache-2.0

package k8svalidation

import (
	"math"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func (c *checker) id(at *field.Path, child string, id *int64) {
	if id != nil && (*id < 0 || *id > math.MaxInt32) {
		c.invalid(at.Child(child), *id, validation.InclusiveRangeError(0, math.MaxInt32))
	}
}

func (p *podCheck) podSecurity(at *field.Path, s *corev1.PodSecurityContext) {
	if s == nil {
		return
	}
	p.id(at, "fsGroup", s.FSGroup)
	p.id(at, "runAsUser", s.RunAsUser)
	p.id(at, "runAsGroup", s.RunAsGroup)
	for i := range s.SupplementalGroups {
		if id := s.SupplementalGroups[i]; id < 0 || id > math.MaxInt32 {
			p.invalid(at.Child("supplementalGroups").Index(i), id, validation.InclusiveRangeError(0, math.MaxInt32))
		}
	}
	enumIf(p.checker, at, "fsGroupChangePolicy", s.FSGroupChangePolicy, corev1.FSGroupChangeOnRootMismatch, corev1.FSGroupChangeAlways)
	p.seccomp(at.Child("seccompProfile"), s.SeccompProfile)
	p.appArmor(at, s.AppArmorProfile)
	p.sysctls(at.Child("sysctls"), s.Sysctls)
	enumIf(p.checker, at, "supplementalGroupsPolicy", s.SupplementalGroupsPolicy, corev1.SupplementalGroupsPolicyMerge, corev1.SupplementalGroupsPolicyStrict)
	if share := p.spec.ShareProcessNamespace; share != nil && *share && p.spec.HostPID {
		p.invalid(at.Child("shareProcessNamespace"), *share, "ShareProcessNamespace and HostPID cannot both be enabled")
	}
}

func (p *containerCheck) containerSecurity(at *field.Path, s *corev1.SecurityContext) {
	if s == nil {
		return
	}
	p.id(at, "runAsUser", s.RunAsUser)
	p.id(at, "runAsGroup", s.RunAsGroup)
	p.seccomp(at.Child("seccompProfile"), s.SeccompProfile)
	p.appArmor(at, s.AppArmorProfile)
	p.procMount(at, s.ProcMount)
	if s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation {
		return
	}
	if s.Privileged != nil && *s.Privileged {
		p.invalid(at, "", "cannot set `allowPrivilegeEscalation` to false and `privileged` to true")
	}
	if s.Capabilities != nil {
		for _, name := range s.Capabilities.Add {
			if name == "CAP_SYS_ADMIN" {
				p.invalid(at, "", "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN")
			}
		}
	}
}

func (p *containerCheck) procMount(at *field.Path, mount *corev1.ProcMountType) {
	enumIf(p.checker, at, "procMount", mount, corev1.DefaultProcMount, corev1.UnmaskedProcMount)
	if mount != nil && *mount == corev1.UnmaskedProcMount && (p.spec.HostUsers == nil || *p.spec.HostUsers) {
		p.invalid(at.Child("procMount"), *mount, "`hostUsers` must be false to use `Unmasked`")
	}
}

func (p *podCheck) seccomp(at *field.Path, s *corev1.SeccompProfile) {
	if s == nil {
		return
	}
	enumIf(p.checker, at, "type", &s.Type, corev1.SeccompProfileTypeLocalhost, corev1.SeccompProfileTypeRuntimeDefault, corev1.SeccompProfileTypeUnconfined)
	switch local := s.Type == corev1.SeccompProfileTypeLocalhost; {
	case local && s.LocalhostProfile == nil:
		p.required(at.Child("localhostProfile"), "must be set when seccomp type is Localhost")
	case local:
		p.descending(at, "localhostProfile", *s.LocalhostProfile)
	case s.LocalhostProfile != nil:
		p.invalid(at.Child("localhostProfile"), *s.LocalhostProfile, "can only be set when seccomp type is Localhost")
	}
}
