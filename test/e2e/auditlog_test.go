// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/admitkit/admitkit/pkg/patch"
)

// An auditEvent has the fields of an audit.k8s.io/v1 Event that the specs read.
type auditEvent struct {
	Stage     string `json:"stage"`
	Verb      string `json:"verb"`
	ObjectRef struct {
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
	} `json:"objectRef"`
	Annotations map[string]string `json:"annotations"`
}

// An auditRecord is the API server's audit record of one call of a mutating webhook.
type auditRecord struct {
	Configuration string      `json:"configuration"`
	Webhook       string      `json:"webhook"`
	Mutated       bool        `json:"mutated"`
	Patch         patch.Patch `json:"patch"`
	PatchType     string      `json:"patchType"`
}

const (
	mutationKey = "mutation.webhook.admission.k8s.io/"
	patchKey    = "patch.webhook.admission.k8s.io/"
)

// audited returns the annotations of the only completed request with this verb for this object. It
// waits, because the API server writes the event after it has sent the response.
func audited(ctx context.Context, verb, namespace, name string) map[string]string {
	GinkgoHelper()
	var found []auditEvent
	Eventually(func(g Gomega) {
		found = nil
		log, err := os.ReadFile(auditFile)
		g.Expect(err).NotTo(HaveOccurred())
		for line := range bytes.Lines(log) {
			if !bytes.HasSuffix(line, []byte("\n")) || !bytes.Contains(line, []byte(namespace)) {
				continue // incomplete, or of another spec
			}
			var event auditEvent
			g.Expect(json.Unmarshal(line, &event)).To(Succeed())
			if event.Stage == "ResponseComplete" && event.Verb == verb && event.ObjectRef.Namespace == namespace && event.ObjectRef.Name == name {
				found = append(found, event)
			}
		}
		g.Expect(found).NotTo(BeEmpty())
	}, "20s", "20ms").WithContext(ctx).Should(Succeed())
	Expect(found).To(HaveLen(1))
	return found[0].Annotations
}

// records returns the records whose keys have this prefix, by "round_R_index_I".
func records(annotations map[string]string, prefix string) map[string]auditRecord {
	GinkgoHelper()
	all := map[string]auditRecord{}
	for key, value := range annotations {
		if call, ok := strings.CutPrefix(key, prefix); ok {
			var r auditRecord
			Expect(json.Unmarshal([]byte(value), &r)).To(Succeed(), value)
			all[call] = r
		}
	}
	return all
}

// mutations returns the mutation records of an audit event as lines, such as "round_0_index_1 b.example.com true".
func mutations(annotations map[string]string) []string {
	GinkgoHelper()
	var lines []string
	for call, r := range records(annotations, mutationKey) {
		lines = append(lines, fmt.Sprintf("%s %s %t", call, r.Webhook, r.Mutated))
	}
	return lines
}
