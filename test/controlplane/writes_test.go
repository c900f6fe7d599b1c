// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	. "github.com/onsi/gomega"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// A write is a kind of request by one user for one object.
type write struct{ user, verb, resource, object string }

func (w write) String() string {
	return fmt.Sprintf("%s %s %s by %s", w.verb, w.resource, w.object, w.user)
}

// writesIn counts the requests that change objects of a namespace, from the audit log.
func writesIn(namespace string) map[write]int {
	file, err := os.Open(auditFile)
	Expect(err).NotTo(HaveOccurred())
	defer func() { _ = file.Close() }() // it was only read
	counts := map[write]int{}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e auditv1.Event
		if json.Unmarshal(lines.Bytes(), &e) != nil || e.ObjectRef == nil || e.ObjectRef.Namespace != namespace || e.ObjectRef.Resource == "events" {
			continue // the last line may be incomplete
		}
		resource := strings.TrimSuffix(e.ObjectRef.Resource+"/"+e.ObjectRef.Subresource, "/")
		// All controllers have one user here, and the user agent does not tell them apart either.
		user, _, _ := strings.Cut(e.UserAgent, "/")
		counts[write{user, e.Verb, resource, e.ObjectRef.Name}]++
	}
	Expect(lines.Err()).NotTo(HaveOccurred())
	return counts
}

// busiest returns the writes that were made most often, and how often.
func busiest(counts map[write]int) (all []string, most int) {
	var list []write
	for w := range counts {
		list = append(list, w)
	}
	slices.SortFunc(list, func(a, b write) int { return cmp.Or(counts[b]-counts[a], strings.Compare(a.String(), b.String())) })
	for _, w := range list[:min(5, len(list))] {
		all, most = append(all, fmt.Sprintf("%d × %v", counts[w], w)), max(most, counts[w])
	}
	return all, most
}
