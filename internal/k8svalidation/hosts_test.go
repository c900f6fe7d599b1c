// SPDX-License-Identifier: Apache-2.0

package k8svalidation

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// hostCases cover host settings of a Pod: namespaces, users, and the operating system.
var hostCases = []podCase{
	{"own users", func(pod *corev1.Pod, _ *corev1.Container) { pod.Spec.HostUsers = new(false) }, ""},
	{"own users in the network of the host", func(pod *corev1.Pod, _ *corev1.Container) {
		pod.Spec.HostUsers, pod.Spec.HostNetwork = new(false), true
	}, "spec.hostNetwork"},
	{"own users among the processes of the host", func(pod *corev1.Pod, _ *corev1.Container) {
		pod.Spec.HostUsers, pod.Spec.HostPID, pod.Spec.HostIPC = new(false), true, true
	}, "spec.HostPID spec.HostIPC"},
	{"hostname", func(pod *corev1.Pod, _ *corev1.Container) { pod.Spec.HostnameOverride = new("web.example.com") }, ""},
	{"bad hostname", func(pod *corev1.Pod, _ *corev1.Container) { pod.Spec.HostnameOverride = new("Web") }, "spec.hostnameOverride"},
	{"long hostname", func(pod *corev1.Pod, _ *corev1.Container) {
		pod.Spec.HostnameOverride = new(strings.Repeat("a", 65))
	}, "spec.hostnameOverride"},
	{"hostname that is that of the host", func(pod *corev1.Pod, _ *corev1.Container) {
		pod.Spec.HostnameOverride, pod.Spec.HostNetwork = new("web"), true
	}, "spec.hostnameOverride"},
	{"two hostnames", func(pod *corev1.Pod, _ *corev1.Container) {
		pod.Spec.HostnameOverride, pod.Spec.SetHostnameAsFQDN = new("web"), new(true)
	}, "spec.hostnameOverride"},
	{"privileged, but does not escalate", func(_ *corev1.Pod, web *corev1.Container) {
		web.SecurityContext = &corev1.SecurityContext{Privileged: new(true), AllowPrivilegeEscalation: new(false)}
	}, first + "securityContext"},
	{"administers, but does not escalate", func(_ *corev1.Pod, web *corev1.Container) {
		web.SecurityContext = &corev1.SecurityContext{Capabilities: &corev1.Capabilities{Add: []corev1.Capability{"CAP_SYS_ADMIN"}}, AllowPrivilegeEscalation: new(false)}
	}, first + "securityContext"},
	{"whole proc of the host", func(_ *corev1.Pod, web *corev1.Container) {
		web.SecurityContext = &corev1.SecurityContext{ProcMount: new(corev1.UnmaskedProcMount)}
	}, first + "securityContext.procMount"},
	{"whole proc of its own", func(pod *corev1.Pod, web *corev1.Container) {
		pod.Spec.HostUsers, web.SecurityContext = new(false), &corev1.SecurityContext{ProcMount: new(corev1.UnmaskedProcMount)}
	}, ""},
	{"unknown proc", func(_ *corev1.Pod, web *corev1.Container) {
		web.SecurityContext = &corev1.SecurityContext{ProcMount: new(corev1.ProcMountType("Some"))}
	}, first + "securityContext.procMount"},
	{"AppArmor", armed(corev1.AppArmorProfile{Type: "RuntimeDefault"}), ""},
	{"AppArmor of no type", armed(corev1.AppArmorProfile{}), armour("type")},
	{"AppArmor of an unknown type", armed(corev1.AppArmorProfile{Type: "Best"}), armour("type")},
	{"AppArmor without its profile", armed(corev1.AppArmorProfile{Type: "Localhost"}), armour("localhostProfile")},
	{"AppArmor with a space", armed(corev1.AppArmorProfile{Type: "Localhost", LocalhostProfile: new(" a")}), armour("localhostProfile")},
	{"AppArmor with a profile too much", armed(corev1.AppArmorProfile{Type: "Unconfined", LocalhostProfile: new("a")}), armour("localhostProfile")},
	{"sysctls", tuned("kernel.shm_rmid_forced", "net/ipv4/tcp_syncookies", "vm.x"), ""},
	{"sysctl twice", tuned("net.core.somaxconn", "net.core.somaxconn"), "spec.securityContext.sysctls[1].name"},
	{"sysctl of no name", tuned(""), "spec.securityContext.sysctls[0].name"},
	{"bad sysctl", tuned("Net.x"), "spec.securityContext.sysctls[0].name"},
	{"sysctls of the host's", func(pod *corev1.Pod, web *corev1.Container) {
		tuned("net/ipv4/tcp_syncookies", "net.core.somaxconn", "kernel.sem", "fs.mqueue.x", "kernel.other", "network.x")(pod, web)
		pod.Spec.HostNetwork, pod.Spec.HostIPC = true, true
	}, "spec.securityContext.sysctls[0].name spec.securityContext.sysctls[1].name spec.securityContext.sysctls[2].name spec.securityContext.sysctls[3].name"},
	{"unknown policy of groups", func(pod *corev1.Pod, _ *corev1.Container) {
		pod.Spec.SecurityContext = &corev1.PodSecurityContext{SupplementalGroupsPolicy: new(corev1.SupplementalGroupsPolicy("All"))}
	}, "spec.securityContext.supplementalGroupsPolicy"},

	{"unknown system", func(pod *corev1.Pod, _ *corev1.Container) { pod.Spec.OS = &corev1.PodOS{Name: "plan9"} }, "spec.os"},
	{"system of no name", func(pod *corev1.Pod, _ *corev1.Container) { pod.Spec.OS = &corev1.PodOS{} }, "spec.os.name"},
	{"Linux with options for Windows", func(pod *corev1.Pod, web *corev1.Container) {
		pod.Spec.OS = &corev1.PodOS{Name: corev1.Linux}
		pod.Spec.SecurityContext = &corev1.PodSecurityContext{WindowsOptions: &corev1.WindowsSecurityContextOptions{}}
		web.SecurityContext = &corev1.SecurityContext{WindowsOptions: &corev1.WindowsSecurityContextOptions{}}
	}, "spec.securityContext.windowsOptions " + first + "securityContext.windowsOptions"},
	{"Windows", func(pod *corev1.Pod, _ *corev1.Container) { pod.Spec.OS = &corev1.PodOS{Name: corev1.Windows} }, ""},
	{"Windows with settings for Linux", func(pod *corev1.Pod, web *corev1.Container) {
		pod.Spec.OS, pod.Spec.HostPID, pod.Spec.ShareProcessNamespace = &corev1.PodOS{Name: corev1.Windows}, true, new(false)
		pod.Spec.SecurityContext = &corev1.PodSecurityContext{FSGroup: new(int64(1)), RunAsUser: new(int64(1)), SELinuxOptions: &corev1.SELinuxOptions{}, SupplementalGroups: []int64{1}}
		web.SecurityContext = &corev1.SecurityContext{Privileged: new(false), Capabilities: &corev1.Capabilities{}, ReadOnlyRootFilesystem: new(true)}
	}, "spec.hostPID spec.shareProcessNamespace spec.securityContext.fsGroup spec.securityContext.runAsUser spec.securityContext.seLinuxOptions spec.securityContext.supplementalGroups " +
		first + "securityContext.privileged " + first + "securityContext.capabilities " + first + "securityContext.readOnlyRootFilesystem"},
	{"processes of a Windows host", hosted(true, new(true), nil), ""},
	{"processes of a Windows host without its network", hosted(false, new(true), nil), "spec.hostNetwork"},
	{"one process of a Windows host", hosted(true, nil, new(true)), "spec"},
	{"one process not of a Windows host", hosted(true, new(true), new(false)), "spec " + first + "securityContext.windowsOptions.hostProcess"},
}

func armed(profile corev1.AppArmorProfile) func(*corev1.Pod, *corev1.Container) {
	return func(pod *corev1.Pod, web *corev1.Container) {
		pod.Spec.SecurityContext = &corev1.PodSecurityContext{AppArmorProfile: profile.DeepCopy()}
		web.SecurityContext = &corev1.SecurityContext{AppArmorProfile: profile.DeepCopy()}
	}
}

func armour(field string) string {
	return "spec.securityContext.appArmorProfile." + field + " " + first + "securityContext.appArmorProfile." + field
}

func tuned(names ...string) func(*corev1.Pod, *corev1.Container) {
	return func(pod *corev1.Pod, _ *corev1.Container) {
		pod.Spec.SecurityContext = &corev1.PodSecurityContext{}
		for _, name := range names {
			pod.Spec.SecurityContext.Sysctls = append(pod.Spec.SecurityContext.Sysctls, corev1.Sysctl{Name: name, Value: "1"})
		}
	}
}

func hosted(network bool, pods, webs *bool) func(*corev1.Pod, *corev1.Container) {
	return func(pod *corev1.Pod, web *corev1.Container) {
		pod.Spec.HostNetwork = network
		pod.Spec.SecurityContext = &corev1.PodSecurityContext{WindowsOptions: &corev1.WindowsSecurityContextOptions{HostProcess: pods}}
		web.SecurityContext = &corev1.SecurityContext{WindowsOptions: &corev1.WindowsSecurityContextOptions{HostProcess: webs}}
	}
}

func TestSysctlNamespaces(t *testing.T) {
	got := []string{}
	for _, name := range []string{"net.ipv4.x", "net/ipv4/x", "kernel/sem", "fs.mqueue.x", "net", "fs.mqueue", "kernel.shmx"} {
		got = append(got, sysctlNamespace(name))
	}
	if want := []string{"net", "net", "ipc", "ipc", "", "", ""}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
