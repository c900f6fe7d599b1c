// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/admitkit/admitkit/examples/testcluster"
	"github.com/admitkit/admitkit/internal/apiserver/need"
	"github.com/admitkit/admitkit/pkg/webhook/webhooktest"
)

// asServiceAccount returns a configuration for clients that have the permissions that the program prints for these
// arguments, and no others. It creates a ServiceAccount with this name in the namespace default.
func asServiceAccount(t *testing.T, c *testcluster.Cluster, name string, args []string) *rest.Config {
	t.Helper()
	createAll(t, c, &corev1.ServiceAccount{ObjectMeta: in(metav1.NamespaceDefault, name)})
	var rules strings.Builder
	printing := slices.Concat([]string{"--print-rbac", "--namespace=" + metav1.NamespaceDefault, "--service-account=" + name}, args)
	if err := newProgram().Run(t.Context(), printing, &rules, io.Discard); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(rules.String(), "kind: ") {
		own := strings.ReplaceAll(rules.String(), "name: gallery\n", "name: gallery-"+name+"\n") // other arguments have other rules
		if _, err := c.Kubectl(t.Context(), own, "create", "-f", "-"); err != nil {
			t.Fatal(err)
		}
	}
	kubeconfig, err := c.ServiceAccount(t.Context(), metav1.NamespaceDefault, name)
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// TestPrintedPermissions runs the program with each policy alone, with only the permissions that it prints for that
// policy. No request of the program may be forbidden. Objects of the second team are in no cache, so hooks ask the API
// server for them.
func TestPrintedPermissions(t *testing.T) {
	need.APIServer(t)
	cluster := faultCluster(t)
	configurations := faultConfigurations(t)
	cases := append(faultCases(),
		faultCase{hook: "noderestriction.example.com", request: onMirrorPod},
		faultCase{hook: "noderestriction.example.com", request: onToken(cluster)},
		faultCase{hook: "podsecurity.example.com", request: onRestriction},
	)
	for _, name := range slices.Sorted(maps.Keys(policies)) {
		t.Run(name, func(t *testing.T) {
			args := []string{"--enable=" + name}
			if content, ok := configurations[name]; ok {
				args = append(args, "--config="+name+"="+write(t, content))
			}
			program := serve(t, asServiceAccount(t, cluster, strings.ToLower(name), args), args...)
			called := 0
			for _, c := range cases {
				if _, ok := program.hooks[c.hook]; !ok {
					continue
				}
				for _, team := range []string{"team-a", "team-none"} {
					called++
					got, text := program.call(t, c.hook, c.request(t, team), 0)
					if strings.Contains(text, "system:serviceaccount:"+metav1.NamespaceDefault+":") || strings.Contains(text, "failed to list") {
						t.Errorf("for %s, %s lacks a permission: %s", team, c.hook, text)
					}
					if team == "team-a" && c.verdict != "" && got != c.verdict {
						t.Errorf("%s %s, want %s: %s", c.hook, got, c.verdict, text)
					}
				}
			}
			if called == 0 {
				t.Error("there is no request for its hooks")
			}
		})
	}
}

// onMirrorPod returns the request of a node to create a mirror Pod. The hook reads the Node, which does not exist.
func onMirrorPod(t *testing.T, team string) *admissionv1.AdmissionRequest {
	t.Helper()
	return by(onPod(func(p *corev1.Pod) {
		p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "a"}
		p.Spec.NodeName, p.Spec.ServiceAccountName = "node", ""
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "node", UID: "a", Controller: ptr.To(true)}}
	}), "system:node:node", "system:nodes")(t, team)
}

// onToken returns requests of a node for a token of one of its Pods. The hook asks whether the node may request tokens
// for the audience.
func onToken(c *testcluster.Cluster) requestFor {
	return by(func(t *testing.T, team string) *admissionv1.AdmissionRequest {
		t.Helper()
		var pod corev1.Pod
		if err := c.Client.Get(t.Context(), client.ObjectKey{Namespace: "team-a", Name: "host"}, &pod); err != nil {
			t.Fatal(err)
		}
		kind := authenticationv1.SchemeGroupVersion.WithKind("TokenRequest")
		request := created(t, kind, "serviceaccounts/token", &authenticationv1.TokenRequest{ObjectMeta: in(team, "shop"), Spec: authenticationv1.TokenRequestSpec{
			Audiences: []string{"vault"}, BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID},
		}})
		request.Resource.Group, request.Resource.Version = "", "v1"
		request.RequestResource = &request.Resource
		return request
	}, "system:node:node", "system:nodes")
}

// onRestriction returns a request that restricts the Pods of a team. The hook lists them.
func onRestriction(t *testing.T, team string) *admissionv1.AdmissionRequest {
	t.Helper()
	namespace := func(level string) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: team, Labels: map[string]string{"pod-security.kubernetes.io/enforce": level}}}
	}
	return webhooktest.Request(t, admissionv1.Update, corev1.SchemeGroupVersion.WithKind("Namespace"), "namespaces", namespace("restricted"), namespace("privileged"))
}
