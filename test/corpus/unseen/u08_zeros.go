// SPDX-License-Identifier: Apache-2.0

package unseen

import (
	"encoding/json"

	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/admitkit/admitkit/pkg/webhook"
)

func zeroBugs() []Case {
	return []Case{{
		Name:    "U08b1-empty-security-contexts",
		Kind:    "Pod",
		Summary: "makes the root file systems of the containers that an annotation names read-only",
		Why: "CREATE a Pod with two containers of which one is named: the other one gets securityContext: {}. A webhook that " +
			"fills securityContext where it is absent then leaves that container as root; if it comes first, it does not.",
		Webhook: podsOnCreate,
		build: raw(func(_ *admissionv1.AdmissionRequest, pod object) ([]operation, error) {
			return readOnlyRoots(pod, func(bool) bool { return true })
		}),
		Sample: readOnlyPod,
		Proof:  orderMatters(byHand(securityDefaults)),
	}, {
		Name:    "U08b2-topic-written-in-full",
		Kind:    "Topic",
		Summary: "sets the retention of topics by their class",
		Why: "CREATE a Topic without partitions: the webhook writes its whole Go struct back, with partitions: 0, paused: false and " +
			"cleanupPolicy: \"\". A webhook that fills absent partitions then has nothing to fill.",
		Webhook: topicsOnWrite,
		build:   raw(fullTopic),
		Sample:  classTopic,
		CRDs:    []string{topicCRD},
		Proof:   orderMatters(byHand(defaultPartitions)),
	}, {
		Name:    "U08b3-storage-class-of-unknown-tier",
		Kind:    "PersistentVolumeClaim",
		Summary: "sets the storage class of a claim by its tier",
		Why: "CREATE a claim with a tier that is not in the table: it gets storageClassName: \"\", which turns dynamic " +
			"provisioning off. A webhook that fills an absent class then leaves the claim unbound for good.",
		Webhook: claimsOnCreate,
		Sample:  tieredClaim,
		Proof: func(t *Trial) string {
			claim := t.Sample()
			put(claim, "bronze", "metadata", "labels", "storage.example.com/tier")
			w, r := t.Instance(), t.Webhook(byHand(defaultClass))
			return differ("the result depends on the order of the two webhooks", r.Create(w.Create(claim)), w.Create(r.Create(claim)))
		},
	}, {
		Name:    "U08b4-profile-with-false",
		Kind:    "Deployment",
		Summary: "applies a profile of Pod settings where the template says nothing",
		Why: "CREATE a Deployment with the profile web, which says nothing about service account tokens: the template gets " +
			"automountServiceAccountToken: false, and a webhook that fills it for clients of the API comes too late.",
		Webhook: deploymentsOnWrite,
		build: typed(func(req *webhook.Request[appsv1.Deployment]) error {
			if p, ok := podProfiles[req.Object.Annotations["profile.example.com/name"]]; ok {
				applyProfile(&req.Object.Spec.Template.Spec, p, &p.automount, &p.fqdn)
			}
			return nil
		}),
		Sample: webDeployment,
		Proof:  orderMatters(byHand(automountDefault)),
	}, {
		Name:    "U08b5-empty-issuer",
		Kind:    "Ingress",
		Summary: "annotates an Ingress with the certificate issuer and the DNS target of its zone",
		Why: "CREATE an Ingress in the zone lab, for which no issuer is configured: it gets the annotation issuer: \"\", so " +
			"that a webhook that fills an absent issuer does nothing, and there is no certificate.",
		Webhook: ingressesOnWrite,
		build: raw(func(_ *admissionv1.AdmissionRequest, ing object) ([]operation, error) {
			return zoneAnnotations(ing, func(string) bool { return true }), nil
		}),
		Sample: zoneIngress,
		Proof:  orderMatters(byHand(defaultIssuer)),
	}}
}

// readOnlyRoots sets readOnlyRootFilesystem of the containers that the annotation names. creates decides whether a
// container without a securityContext gets one.
func readOnlyRoots(pod object, creates func(isNamed bool) bool) ([]operation, error) {
	want := annotation(pod, "security.example.com/read-only")
	if want == "" {
		return nil, nil
	}
	var ops []operation
	for i, c := range list(pod, "spec", "containers") {
		isNamed := text(c, "name") == want
		if dict(c, "securityContext") == nil && creates(isNamed) {
			ops = append(ops, add(pointer("spec", "containers", i, "securityContext"), object{}))
		}
		if isNamed && at(c, "securityContext", "readOnlyRootFilesystem") == nil {
			ops = append(ops, add(pointer("spec", "containers", i, "securityContext", "readOnlyRootFilesystem"), true))
		}
	}
	return ops, nil
}

// fullTopicSpec has no omitempty, so encoding it adds all absent fields.
type fullTopicSpec struct {
	Cluster       string `json:"cluster"`
	Partitions    int32  `json:"partitions"`
	Retention     string `json:"retention"`
	CleanupPolicy string `json:"cleanupPolicy"`
	Paused        bool   `json:"paused"`
}

var retentions = map[string]string{"events": "72h", "archive": "8760h"}

func fullTopic(_ *admissionv1.AdmissionRequest, t object) ([]operation, error) {
	retention := retentions[text(t, "metadata", "labels", "data.example.com/class")]
	spec := dict(t, "spec")
	if retention == "" || text(spec, "retention") == retention {
		return nil, nil
	}
	var full fullTopicSpec
	if err := json.Unmarshal(encode(spec), &full); err != nil {
		return nil, err
	}
	full.Retention = retention
	var after object
	if err := json.Unmarshal(encode(full), &after); err != nil {
		return nil, err
	}
	var ops []operation
	for _, key := range sortedKeys(after) {
		if _, present := spec[key]; !present || string(encode(spec[key])) != string(encode(after[key])) {
			ops = append(ops, add(pointer("spec", key), after[key]))
		}
	}
	return ops, nil
}

// A podProfile has the settings of a kind of program.
type podProfile struct {
	nodePool  string
	automount bool
	fqdn      bool
}

var podProfiles = map[string]podProfile{
	"web":      {nodePool: "web"},
	"operator": {nodePool: "system", automount: true},
}

// applyProfile sets the fields of a profile that the template lacks. It skips automount and fqdn if they are nil.
func applyProfile(spec *corev1.PodSpec, p podProfile, automount, fqdn *bool) {
	if spec.NodeSelector["pool"] == "" {
		if spec.NodeSelector == nil {
			spec.NodeSelector = map[string]string{}
		}
		spec.NodeSelector["pool"] = p.nodePool
	}
	if spec.AutomountServiceAccountToken == nil {
		spec.AutomountServiceAccountToken = automount
	}
	if spec.SetHostnameAsFQDN == nil {
		spec.SetHostnameAsFQDN = fqdn
	}
}

type zone struct{ issuer, target string }

var zones = map[string]zone{
	"public": {"letsencrypt", "edge.example.com"},
	"lab":    {"", "lab.example.com"},
}

// zoneAnnotations adds the missing annotations of a zone. It skips a value for which writes returns false.
func zoneAnnotations(ing object, writes func(value string) bool) []operation {
	z, ok := zones[annotation(ing, "dns.example.com/zone")]
	if !ok {
		return nil
	}
	var ops []operation
	for _, a := range [][2]string{{"cert.example.com/issuer", z.issuer}, {"dns.example.com/target", z.target}} {
		if _, there := dict(ing, "metadata", "annotations")[a[0]]; !there && writes(a[1]) {
			ops = append(ops, add(pointer("metadata", "annotations", a[0]), a[1]))
		}
	}
	return ops
}

// Webhooks that set absent fields.

func securityDefaults(o object) {
	for _, c := range list(o, "spec", "containers") {
		if at(c, "securityContext") == nil {
			put(c, object{"runAsNonRoot": true}, "securityContext")
		}
	}
}

func defaultPartitions(o object) {
	if at(o, "spec", "partitions") == nil {
		put(o, 6.0, "spec", "partitions")
	}
}

func defaultClass(o object) {
	if at(o, "spec", "storageClassName") == nil {
		put(o, "standard", "spec", "storageClassName")
	}
}

func automountDefault(o object) {
	if at(o, "spec", "template", "spec", "automountServiceAccountToken") == nil {
		put(o, true, "spec", "template", "spec", "automountServiceAccountToken")
	}
}

func defaultIssuer(o object) {
	if at(o, "metadata", "annotations", "cert.example.com/issuer") == nil {
		put(o, "internal-ca", "metadata", "annotations", "cert.example.com/issuer")
	}
}
