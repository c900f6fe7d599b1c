// SPDX-License-Identifier: Apache-2.0

package gallery

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	"k8s.io/apimachinery/pkg/api/equality"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/admissionregistration"
	registrationfuzzer "k8s.io/kubernetes/pkg/apis/admissionregistration/fuzzer"
	_ "k8s.io/kubernetes/pkg/apis/admissionregistration/install"
	"k8s.io/kubernetes/pkg/apis/admissionregistration/validation"

	"github.com/admitkit/admitkit/pkg/webhook"
	"github.com/admitkit/admitkit/pkg/webhook/manifest"
)

// betaConfigurations is the number of random configurations of each kind that TestBetaMeansTheSame converts.
const betaConfigurations = 2000

// TestBetaMeansTheSame converts random v1 configurations, with unset fields, to v1beta1. Decoded and defaulted by
// Kubernetes' own code, both must be the same configuration. No field must be left to the defaults of v1beta1, which
// differ from those of v1.
func TestBetaMeansTheSame(t *testing.T) {
	random := rand.New(rand.NewPCG(*seed, 7))
	fill := fuzzer.FuzzerFor(fuzzer.MergeFuzzerFuncs(metafuzzer.Funcs, registrationfuzzer.Funcs), fillSource{random}, legacyscheme.Codecs)
	for range betaConfigurations {
		mutating, validating := &admissionregistrationv1.MutatingWebhookConfiguration{}, &admissionregistrationv1.ValidatingWebhookConfiguration{}
		randomConfiguration(t, fill.Fill, random, &admissionregistration.MutatingWebhookConfiguration{}, mutating)
		randomConfiguration(t, fill.Fill, random, &admissionregistration.ValidatingWebhookConfiguration{}, validating)
		oldMutating, oldValidating, err := manifest.V1beta1(mutating, validating)
		if err != nil {
			t.Fatal(err)
		}
		for _, pair := range []struct{ v1, old, want, got runtime.Object }{
			{mutating, oldMutating, &admissionregistration.MutatingWebhookConfiguration{}, &admissionregistration.MutatingWebhookConfiguration{}},
			{validating, oldValidating, &admissionregistration.ValidatingWebhookConfiguration{}, &admissionregistration.ValidatingWebhookConfiguration{}},
		} {
			written := pair.old.DeepCopyObject()
			if legacyscheme.Scheme.Default(pair.old); !equality.Semantic.DeepEqual(written, pair.old) {
				t.Fatalf("the defaults of v1beta1 change\n%+v\nto\n%+v", written, pair.old)
			}
			legacyscheme.Scheme.Default(pair.v1)
			asInternal(t, pair.v1, pair.want)
			asInternal(t, pair.old, pair.got)
			if !equality.Semantic.DeepEqual(pair.want, pair.got) {
				t.Fatalf("%+v\nbecomes\n%+v", pair.v1, pair.old)
			}
		}
	}
}

// TestBetaIsValid converts the registrations of the whole gallery to v1beta1. Kubernetes' own validation must accept
// them.
func TestBetaIsValid(t *testing.T) {
	for _, c := range controllers() {
		file := filepath.Join(t.TempDir(), "configuration")
		if err := os.WriteFile(file, []byte(c.configuration()), 0o600); err != nil {
			t.Fatal(err)
		}
		o := webhook.ConfigurationOptions{Name: "gallery", Service: &admissionregistrationv1.ServiceReference{Namespace: "gallery", Name: "hooks"}}
		mutating, validating, err := webhook.Configurations(o, c.hooks(t, newCluster(t, nil, nil), file)...)
		if err != nil {
			t.Fatal(err)
		}
		if mutating != nil {
			for i := range mutating.Webhooks {
				mutating.Webhooks[i].MatchConditions = nil // v1beta1 lacks them
			}
		}
		if validating != nil {
			for i := range validating.Webhooks {
				validating.Webhooks[i].MatchConditions = nil
			}
		}
		oldMutating, oldValidating, err := manifest.V1beta1(mutating, validating)
		if err != nil {
			t.Fatal(err)
		}
		var errs field.ErrorList
		if oldMutating != nil {
			internal := &admissionregistration.MutatingWebhookConfiguration{}
			asInternal(t, oldMutating, internal)
			errs = append(errs, validation.ValidateMutatingWebhookConfiguration(internal)...)
		}
		if oldValidating != nil {
			internal := &admissionregistration.ValidatingWebhookConfiguration{}
			asInternal(t, oldValidating, internal)
			errs = append(errs, validation.ValidateValidatingWebhookConfiguration(internal)...)
		}
		if len(errs) > 0 || oldMutating == nil && oldValidating == nil {
			t.Errorf("%s: %v", c.name, errs)
		}
	}
}

// optional lists the fields of a webhook for which both versions have a default.
var optional = []string{"failurePolicy", "matchPolicy", "namespaceSelector", "objectSelector", "timeoutSeconds", "reinvocationPolicy"}

// randomConfiguration fills internal with random values and converts it to v1. It removes matchConditions, which v1beta1
// lacks, and each optional field of a third of the webhooks.
func randomConfiguration(t *testing.T, fill func(any), random *rand.Rand, internal, v1 runtime.Object) {
	t.Helper()
	fill(internal)
	asInternal(t, internal, v1)
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(v1)
	if err != nil {
		t.Fatal(err)
	}
	unset := func(object map[string]any, fields ...string) {
		for _, name := range fields {
			if random.IntN(3) == 0 {
				delete(object, name)
			}
		}
	}
	webhooks, _ := content["webhooks"].([]any)
	for _, entry := range webhooks {
		w := entry.(map[string]any)
		delete(w, "matchConditions")
		unset(w, optional...)
		if service, found, _ := unstructured.NestedFieldNoCopy(w, "clientConfig", "service"); found {
			unset(service.(map[string]any), "port")
		}
		rules, _ := w["rules"].([]any)
		for _, rule := range rules {
			unset(rule.(map[string]any), "scope")
		}
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, v1); err != nil {
		t.Fatal(err)
	}
}

// asInternal converts between the internal version of an object and another one.
func asInternal(t *testing.T, from, to runtime.Object) {
	t.Helper()
	if err := legacyscheme.Scheme.Convert(from, to, nil); err != nil {
		t.Fatal(err)
	}
}

// fillSource makes a random source of math/rand from one of math/rand/v2, for the fuzzer of Kubernetes.
type fillSource struct{ *rand.Rand }

func (s fillSource) Int63() int64 { return s.Int64() }

// Seed does nothing: the seed of the source is set already.
func (s fillSource) Seed(int64) {}
