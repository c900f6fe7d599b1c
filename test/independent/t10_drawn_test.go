// SPDX-License-Identifier: Apache-2.0

package independent

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
)

const t10CronSample = `
apiVersion: batch/v1
kind: CronJob
metadata: {name: cleanup, namespace: storage}
spec:
  schedule: "H 3 * * *"
  jobTemplate:
    spec:
      template:
        spec:
          restartPolicy: Never
          containers:
            - name: cleanup
              image: registry.fjord.example/storage/cleanup:2
`

var _ = add(hookCase{
	Name:    "T10b1-schedule-minute-drawn",
	Summary: "An H for the minute in the schedule of a CronJob is replaced by a minute that is drawn, so that not all start at once.",
	Why:     "The result has no H, so a second call keeps it. But each UPDATE with the author's original manifest has the H again, and another minute is drawn. A job can run twice in an hour, or not at all.",
	Webhook: register("jitter.fjord.example", "batch", "v1", "cronjobs", create, update),
	Samples: []string{t10CronSample},
	New: func() http.Handler {
		return editing(func(_ *admissionv1.AdmissionRequest, e *editor) error {
			fields := strings.Fields(str(e.get("spec", "schedule")))
			if len(fields) != 5 || fields[0] != "H" {
				return nil
			}
			fields[0] = strconv.Itoa(rand.IntN(60))
			e.set(strings.Join(fields, " "), "spec", "schedule")
			return nil
		})
	},
	Proof: func(p *prover) string {
		live := p.created(p.object(t10CronSample))
		for range 30 {
			if out := p.updated(live, p.object(t10CronSample)); !same(out, live) {
				return fmt.Sprintf("%v becomes %v", reach(live, "spec", "schedule"), reach(out, "spec", "schedule"))
			}
		}
		return ""
	},
})

// t10Schedule replaces each H by a number that is derived from the key.
func t10Schedule(schedule, key string) string {
	switch strings.TrimSpace(schedule) {
	case "@hourly":
		schedule = "H * * * *"
	case "@daily", "@midnight":
		schedule = "H H * * *"
	}
	fields := strings.Fields(schedule)
	if len(fields) != 5 {
		return schedule
	}
	changed := false
	for i, size := range []uint32{60, 24, 28, 12, 7} {
		first := uint32(0)
		if i == 2 || i == 3 {
			first = 1
		}
		base, step, stepped := strings.Cut(fields[i], "/")
		if base != "H" {
			continue
		}
		h := fnv.New32a()
		fmt.Fprintf(h, "%d/%s", i, key)
		if !stepped {
			fields[i] = strconv.Itoa(int(first + h.Sum32()%size))
			changed = true
		} else if n, err := strconv.ParseUint(step, 10, 32); err == nil && n > 0 {
			fields[i] = fmt.Sprintf("%d-%d/%d", first+h.Sum32()%min(uint32(n), size), first+size-1, n)
			changed = true
		}
	}
	if !changed {
		return schedule
	}
	return strings.Join(fields, " ")
}

var _ = add(hookCase{
	Name:    "T10c1-schedule-hashed",
	Summary: "An H in the schedule of a CronJob, also with a step or in @hourly and @daily, is replaced by a number, as in Jenkins.",
	Why:     "The number is a hash of the namespace, the name and the place, so the author's manifest gives the same each time. The result has no H. A schedule without H is not touched.",
	Webhook: register("hashed.fjord.example", "batch", "v1", "cronjobs", create, update),
	Samples: []string{t10CronSample, strings.Replace(t10CronSample, "H 3 * * *", "H/15 * * * H", 1), strings.Replace(t10CronSample, "H 3 * * *", "@daily", 1)},
	New: func() http.Handler {
		return editing(func(r *admissionv1.AdmissionRequest, e *editor) error {
			name := str(e.get("metadata", "generateName"))
			if name == "" {
				name = str(e.get("metadata", "name"))
			}
			have := str(e.get("spec", "schedule"))
			if want := t10Schedule(have, r.Namespace+"/"+name); want != have {
				e.set(want, "spec", "schedule")
			}
			return nil
		})
	},
	Proof: func(p *prover) string {
		live := p.created(p.object(t10CronSample))
		p.restart()
		for range 30 {
			if out := p.updated(live, p.object(t10CronSample)); !same(out, live) {
				return fmt.Sprintf("%v becomes %v", reach(live, "spec", "schedule"), reach(out, "spec", "schedule"))
			}
		}
		plain := copyOf(live)
		set(plain, "5  4 * * THU", "spec", "schedule")
		if out := p.updated(live, plain); !same(out, plain) {
			return "a schedule without H is changed"
		}
		return ""
	},
})

const t10PreviewSample = `
apiVersion: preview.fjord.example/v1
kind: PreviewEnvironment
metadata: {name: pr-1842, namespace: previews}
spec:
  ref: refs/pull/1842/head
`

const (
	t10Started = "preview.fjord.example/started-at"
	t10Expires = "preview.fjord.example/expires-at"
)

var _ = add(hookCase{
	Name:    "T10c2-preview-expiry",
	Summary: "A PreviewEnvironment gets the time of its start when it is created, and the time when it ends, which is later by spec.ttl. The ttl is 72 hours if absent.",
	Why:     "The time is only read for an object that has no start, neither itself nor in the old object. In an UPDATE the start of the old object counts, so the author's manifest changes nothing. The end is derived from the start in each call and follows the ttl.",
	Webhook: register("previews.fjord.example", "preview.fjord.example", "v1", "previewenvironments", create, update),
	Samples: []string{t10PreviewSample},
	CRDs: []string{crdOf("preview.fjord.example", "v1", "PreviewEnvironment", "previewenvironments", `
            spec:
              type: object
              properties:
                ref: {type: string}
                ttl: {type: string}`)},
	New: func() http.Handler {
		return editing(func(r *admissionv1.AdmissionRequest, e *editor) error {
			candidates := []string{str(e.get("metadata", "annotations", t10Started)), str(e.get("metadata", "creationTimestamp"))}
			if r.Operation == admissionv1.Update {
				old, err := edit(r.OldObject.Raw)
				if err != nil {
					return err
				}
				candidates = append([]string{str(old.get("metadata", "annotations", t10Started))}, candidates...)
			}
			started := time.Now().UTC().Truncate(time.Second)
			for _, text := range candidates {
				if t, err := time.Parse(time.RFC3339, text); err == nil {
					started = t.UTC().Truncate(time.Second)
					break
				}
			}
			if e.get("spec", "ttl") == nil {
				e.set("72h", "spec", "ttl")
			}
			ttl, err := time.ParseDuration(str(e.get("spec", "ttl")))
			if err != nil {
				return err
			}
			for key, want := range map[string]time.Time{t10Started: started, t10Expires: started.Add(ttl)} {
				if text := want.Format(time.RFC3339); text != str(e.get("metadata", "annotations", key)) {
					e.set(text, "metadata", "annotations", key)
				}
			}
			return nil
		})
	},
	Proof: func(p *prover) string {
		live := p.created(p.object(t10PreviewSample))
		set(live, "2024-02-28T12:00:00Z", "metadata", "annotations", t10Started) // as of some days ago
		live = p.updated(live, live)
		p.restart()
		if out := p.updated(live, p.object(t10PreviewSample)); !same(out, live) {
			return fmt.Sprintf("%v becomes %v", live, out)
		}
		longer := p.object(t10PreviewSample)
		set(longer, "96h", "spec", "ttl")
		if got := reach(p.updated(live, longer), "metadata", "annotations", t10Expires); got != "2024-03-03T12:00:00Z" {
			return fmt.Sprint("ends at ", got)
		}
		return ""
	},
})
