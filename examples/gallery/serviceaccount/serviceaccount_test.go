// SPDX-License-Identifier: Apache-2.0

package serviceaccount

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/examples/gallery/internal/gallerytest"
	"github.com/admitkit/admitkit/examples/internal/hooktest"
	"github.com/admitkit/admitkit/pkg/idempotence"
	"github.com/admitkit/admitkit/pkg/reads"
	"github.com/admitkit/admitkit/pkg/webhook"
)

// strict returns a ServiceAccount that allows one Secret and one pull secret.
func strict() *corev1.ServiceAccount {
	return &corev1.ServiceAccount{
		ObjectMeta:       metav1.ObjectMeta{Name: "strict", Namespace: "team-a", Annotations: map[string]string{EnforceAnnotation: "true"}},
		Secrets:          []corev1.ObjectReference{{Name: "listed"}},
		ImagePullSecrets: []corev1.LocalObjectReference{{Name: "pull"}},
	}
}

func account(name string, changes ...func(*corev1.ServiceAccount)) *corev1.ServiceAccount {
	a := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "team-a"}}
	for _, change := range changes {
		change(a)
	}
	return a
}

// hooks returns the hooks for a cluster with these ServiceAccounts.
func hooks(t *testing.T, accounts ...*corev1.ServiceAccount) []*webhook.Hook {
	t.Helper()
	return hooksReading(t, func(namespace, name string) (*corev1.ServiceAccount, error) {
		for _, a := range accounts {
			if a.Namespace == namespace && a.Name == name {
				return a, nil
			}
		}
		return nil, apierrors.NewNotFound(corev1.Resource("serviceaccounts"), name)
	})
}

func hooksReading(t *testing.T, get func(namespace, name string) (*corev1.ServiceAccount, error)) []*webhook.Hook {
	t.Helper()
	reader, err := reads.New(reads.Options[*corev1.ServiceAccount]{
		Resource: "serviceaccounts", Cached: get,
		Live: func(_ context.Context, namespace, name string) (*corev1.ServiceAccount, error) {
			return get(namespace, name)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return Hooks(reader)
}

func setting(t *testing.T, accounts ...*corev1.ServiceAccount) *webhook.Hook {
	t.Helper()
	return hooktest.Named(t, hooks(t, accounts...), "set.serviceaccount.example.com")
}

func checking(t *testing.T, accounts ...*corev1.ServiceAccount) *webhook.Hook {
	t.Helper()
	return hooktest.Named(t, hooks(t, accounts...), "check.serviceaccount.example.com")
}

// pod returns a Pod that uses the ServiceAccount.
func pod(account string, changes ...func(*corev1.PodSpec)) *corev1.Pod {
	return gallerytest.Pod(func(p *corev1.Pod) {
		p.Spec.ServiceAccountName, p.Spec.DeprecatedServiceAccount = account, account
		for _, change := range changes {
			change(&p.Spec)
		}
	})
}

func mirror(account string, changes ...func(*corev1.PodSpec)) *corev1.Pod {
	p := pod(account, changes...)
	p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "hash"}
	return p
}

func TestSetsTheAccount(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"": DefaultName, "shop": "shop"} {
		decision, after := gallerytest.Call(t, setting(t, account(DefaultName), account("shop")), pod(name), nil)
		gallerytest.Denied(t, decision, "")
		if got := after.Spec; got.ServiceAccountName != want || got.DeprecatedServiceAccount != want {
			t.Errorf("got %q and %q, want %q", got.ServiceAccountName, got.DeprecatedServiceAccount, want)
		}
	}
	decision, _ := gallerytest.Call(t, setting(t, account(DefaultName)), pod("gone"), nil)
	gallerytest.Denied(t, decision, `pods "shop" is forbidden: error looking up service account team-a/gone: serviceaccount "gone" not found`)
}

func TestPullSecrets(t *testing.T) {
	t.Parallel()
	_, after := gallerytest.Call(t, setting(t, strict()), pod("strict"), nil)
	if got := after.Spec.ImagePullSecrets; len(got) != 1 || got[0].Name != "pull" {
		t.Errorf("got %v", got)
	}
	own := func(s *corev1.PodSpec) { s.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "own"}} }
	_, after = gallerytest.Call(t, setting(t, account("shop", func(a *corev1.ServiceAccount) { a.ImagePullSecrets = strict().ImagePullSecrets })), pod("shop", own), nil)
	if got := after.Spec.ImagePullSecrets; len(got) != 1 || got[0].Name != "own" {
		t.Errorf("got %v", got)
	}
}

func TestToken(t *testing.T) {
	t.Parallel()
	mountedAt := func(path string) func(*corev1.PodSpec) {
		return func(s *corev1.PodSpec) {
			s.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "own", MountPath: path}}
		}
	}
	volume := func(name string) func(*corev1.PodSpec) {
		return func(s *corev1.PodSpec) { s.Volumes = append(s.Volumes, corev1.Volume{Name: name}) }
	}
	withInit := func(s *corev1.PodSpec) { s.InitContainers = []corev1.Container{{Name: "init", Image: "init:v1"}} }
	automount := func(value bool) func(*corev1.PodSpec) {
		return func(s *corev1.PodSpec) { s.AutomountServiceAccountToken = &value }
	}
	off := func(a *corev1.ServiceAccount) { a.AutomountServiceAccountToken = ptr.To(false) }
	rows := []struct {
		reason  string
		account *corev1.ServiceAccount
		pod     *corev1.Pod
		volumes string // the names, separated by spaces
		mounts  string // the volumes at the path, by container
	}{
		{"the token is mounted by default", account("shop"), pod("shop", withInit), VolumeName, "init:" + VolumeName + " app:" + VolumeName},
		{"the account turns it off", account("shop", off), pod("shop"), "", ""},
		{"the Pod turns it on", account("shop", off), pod("shop", automount(true)), VolumeName, "app:" + VolumeName},
		{"the Pod turns it off", account("shop"), pod("shop", automount(false)), "", ""},
		{"other volumes and mounts are kept", account("shop"), pod("shop", volume("own"), mountedAt("/own")), "own " + VolumeName, "app:" + VolumeName},
		{"the path has a mount", account("shop"), pod("shop", volume("own"), mountedAt(MountPath)), "own", "app:own"},
		{"one of two containers has a mount", account("shop"), pod("shop", withInit, mountedAt(MountPath)), VolumeName, "init:" + VolumeName + " app:own"},
		{"a token volume exists", account("shop"), pod("shop", volume("own"), volume("kube-api-access-x7s2m")), "own kube-api-access-x7s2m", "app:kube-api-access-x7s2m"},
	}
	for _, row := range rows {
		t.Run(row.reason, func(t *testing.T) {
			t.Parallel()
			decision, after := gallerytest.Call(t, setting(t, row.account), row.pod, nil)
			gallerytest.Denied(t, decision, "")
			var volumes, mounts []string
			for _, v := range after.Spec.Volumes {
				volumes = append(volumes, v.Name)
			}
			for _, c := range append(after.Spec.InitContainers, after.Spec.Containers...) {
				for _, m := range c.VolumeMounts {
					if m.MountPath == MountPath {
						mounts = append(mounts, c.Name+":"+m.Name)
					}
				}
			}
			if got := strings.Join(volumes, " "); got != row.volumes {
				t.Errorf("got the volumes %q, want %q", got, row.volumes)
			}
			if got := strings.Join(mounts, " "); got != row.mounts {
				t.Errorf("got the mounts %q, want %q", got, row.mounts)
			}
		})
	}
}

// inEnv and inEnvFrom return a container that refers to the Secret.
func inEnv(secret string) corev1.EphemeralContainerCommon {
	ref := &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: secret}, Key: "a"}
	return corev1.EphemeralContainerCommon{Name: "c", Image: "c:v1", Env: []corev1.EnvVar{{Name: "PLAIN"}, {Name: "A", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: ref}}}}
}

func inEnvFrom(secret string) corev1.EphemeralContainerCommon {
	ref := &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: secret}}
	return corev1.EphemeralContainerCommon{Name: "c", Image: "c:v1", EnvFrom: []corev1.EnvFromSource{{}, {SecretRef: ref}}}
}

func asInit(c corev1.EphemeralContainerCommon) func(*corev1.PodSpec) {
	return func(s *corev1.PodSpec) { s.InitContainers = []corev1.Container{corev1.Container(c)} }
}

func asContainer(c corev1.EphemeralContainerCommon) func(*corev1.PodSpec) {
	return func(s *corev1.PodSpec) { s.Containers = []corev1.Container{corev1.Container(c)} }
}

func asEphemeral(c corev1.EphemeralContainerCommon) func(*corev1.PodSpec) {
	return func(s *corev1.PodSpec) {
		s.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: c}}
	}
}

func asVolume(source corev1.VolumeSource) func(*corev1.PodSpec) {
	return func(s *corev1.PodSpec) { s.Volumes = []corev1.Volume{{Name: "v", VolumeSource: source}} }
}

func secretVolume(name string) corev1.VolumeSource {
	return corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: name}}
}

func pulls(secret string) func(*corev1.PodSpec) {
	return func(s *corev1.PodSpec) { s.ImagePullSecrets = []corev1.LocalObjectReference{{Name: secret}} }
}

func TestSecrets(t *testing.T) {
	t.Parallel()
	const end = `secret.secretName="other" is not allowed because service account strict does not reference that secret`
	rows := []struct {
		change func(secret string) func(*corev1.PodSpec)
		denial string
	}{
		{func(s string) func(*corev1.PodSpec) { return asVolume(secretVolume(s)) }, "volume with " + end},
		{func(s string) func(*corev1.PodSpec) { return asInit(inEnv(s)) }, "init container c with envVar A referencing " + end},
		{func(s string) func(*corev1.PodSpec) { return asInit(inEnvFrom(s)) }, "init container c with envFrom referencing " + end},
		{func(s string) func(*corev1.PodSpec) { return asContainer(inEnv(s)) }, "container c with envVar A referencing " + end},
		{func(s string) func(*corev1.PodSpec) { return asContainer(inEnvFrom(s)) }, "container c with envFrom referencing " + end},
	}
	for _, row := range rows {
		for _, hook := range []*webhook.Hook{setting(t, strict()), checking(t, strict())} {
			decision, _ := gallerytest.Call(t, hook, pod("strict", row.change("other")), nil)
			gallerytest.Denied(t, decision, `pods "shop" is forbidden: `+row.denial)
			decision, _ = gallerytest.Call(t, hook, pod("strict", row.change("listed"), pulls("pull")), nil)
			gallerytest.Denied(t, decision, "")
		}
	}
	decision, _ := gallerytest.Call(t, checking(t, strict()), pod("strict", pulls("other")), nil)
	gallerytest.Denied(t, decision, `pods "shop" is forbidden: imagePullSecrets[0].name="other" is not allowed because service account strict does not reference that imagePullSecret`)
	for _, value := range []string{"false", "yes", ""} {
		relaxed := strict()
		relaxed.Annotations[EnforceAnnotation] = value
		decision, _ := gallerytest.Call(t, checking(t, relaxed), pod("strict", asContainer(inEnv("other"))), nil)
		gallerytest.Denied(t, decision, "")
	}
}

// ephemeral calls the validating hook for an update of the ephemeral containers.
func ephemeral(t *testing.T, pod *corev1.Pod) *admissionv1.AdmissionResponse {
	t.Helper()
	decision, _ := gallerytest.On(t, checking(t, strict()), admissionv1.Update, corev1.SchemeGroupVersion.WithKind("Pod"), "pods/ephemeralcontainers", pod, pod)
	return decision
}

func TestEphemeralContainers(t *testing.T) {
	t.Parallel()
	gallerytest.Denied(t, ephemeral(t, pod("strict", asContainer(inEnv("other")), asEphemeral(inEnv("listed")))), "")
	gallerytest.Denied(t, ephemeral(t, pod("strict", asEphemeral(inEnv("other")))),
		`ephemeral container c with envVar A referencing secret.secretName="other" is not allowed because service account strict does not reference that secret`)
	gallerytest.Denied(t, ephemeral(t, mirror("")), `pods "shop" is forbidden: no service account specified for pod team-a/shop`)
}

func projects(source corev1.VolumeProjection) func(*corev1.PodSpec) {
	return asVolume(corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{}, source}}})
}

func TestMirrorPods(t *testing.T) {
	t.Parallel()
	ref := &corev1.LocalObjectReference{Name: "a"}
	const secrets = `pods "shop" is forbidden: a mirror pod may not reference secrets`
	token := corev1.VolumeProjection{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}}
	rows := []struct {
		pod    *corev1.Pod
		denial string
	}{
		{mirror(""), ""},
		{mirror("", asVolume(secretVolume("")), asContainer(inEnv(""))), ""},
		{mirror("shop"), `pods "shop" is forbidden: a mirror pod may not reference service accounts`},
		{mirror("", projects(token)),
			`pods "shop" is forbidden: a mirror pod may not use ServiceAccountToken volume projections`},
		{mirror("", projects(corev1.VolumeProjection{Secret: &corev1.SecretProjection{LocalObjectReference: *ref}})), secrets},
		{mirror("", pulls("a")), secrets},
		{mirror("", asInit(inEnv("a"))), secrets},
		{mirror("", asContainer(inEnvFrom("a"))), secrets},
		{mirror("", asEphemeral(inEnv("a"))), secrets},
		{mirror("", asVolume(secretVolume("a"))), secrets},
	}
	for _, row := range rows {
		for _, hook := range hooks(t) {
			decision, _ := gallerytest.Call(t, hook, row.pod, nil)
			gallerytest.Denied(t, decision, row.denial)
			if decision.Patch != nil {
				t.Errorf("the mirror Pod is changed: %s", decision.Patch)
			}
		}
	}
}

func TestNoAccount(t *testing.T) {
	t.Parallel()
	decision, _ := gallerytest.Call(t, checking(t), pod(""), nil)
	gallerytest.Denied(t, decision, `pods "shop" is forbidden: no service account specified for pod team-a/shop`)
	decision, _ = gallerytest.Call(t, checking(t), pod("gone"), nil)
	gallerytest.Denied(t, decision, `pods "shop" is forbidden: error looking up service account team-a/gone: serviceaccount "gone" not found`)
}

func TestReadFails(t *testing.T) {
	t.Parallel()
	for _, hook := range hooksReading(t, func(string, string) (*corev1.ServiceAccount, error) { return nil, errors.New("not indexed") }) {
		if got := gallerytest.Fails(t, hook, pod("shop"), nil); got != "reading serviceaccounts team-a/shop: not indexed" {
			t.Errorf("%s: got %q", hook.Name(), got)
		}
	}
}

// TestWaitsForTheDefaultAccount checks that the hooks wait for the ServiceAccount of a new namespace, but not forever.
func TestWaitsForTheDefaultAccount(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		hook := hooksReading(t, func(_, name string) (*corev1.ServiceAccount, error) {
			if time.Since(start) < time.Second {
				return nil, apierrors.NewNotFound(corev1.Resource("serviceaccounts"), name)
			}
			return account(name), nil
		})[0]
		decision, after := gallerytest.Call(t, hook, pod(""), nil)
		gallerytest.Denied(t, decision, "")
		if after.Spec.ServiceAccountName != DefaultName {
			t.Errorf("got %q", after.Spec.ServiceAccountName)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		decision, _ := gallerytest.Call(t, setting(t), pod(""), nil)
		gallerytest.Denied(t, decision, `pods "shop" is forbidden: error looking up service account team-a/default: serviceaccount "default" not found`)
		if got := time.Since(start); got != 9*delay {
			t.Errorf("the hook waited for %v", got)
		}
	})
}

// TestWaitsNoLongerThanTheCall checks that the wait ends with the context of the call.
func TestWaitsNoLongerThanTheCall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), delay/2)
		defer cancel()
		reader, err := reads.New(reads.Options[*corev1.ServiceAccount]{
			Resource: "serviceaccounts",
			Cached: func(_, name string) (*corev1.ServiceAccount, error) {
				return nil, apierrors.NewNotFound(corev1.Resource("serviceaccounts"), name)
			},
			Live: func(_ context.Context, _, name string) (*corev1.ServiceAccount, error) {
				return nil, apierrors.NewNotFound(corev1.Resource("serviceaccounts"), name)
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		p := &policy{reader}
		if _, err := p.find(ctx, "team-a", DefaultName); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	})
}

func TestIdempotent(t *testing.T) {
	t.Parallel()
	const reason = "as in the original, a user's volume whose name has the prefix is used as the token volume"
	gallerytest.IdempotentExcept(t, idempotence.L5, reason, func() *webhook.Hook {
		return setting(t, account(DefaultName), account("shop", func(a *corev1.ServiceAccount) { a.ImagePullSecrets = strict().ImagePullSecrets }))
	}, pod(""), pod("shop"))
}
