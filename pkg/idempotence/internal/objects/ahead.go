// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"sync"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/admitkit/admitkit/pkg/idempotence/internal/tree"
)

// mostAtOnce is the maximum number of requests of Ahead at the same time.
const mostAtOnce = 4

// Ahead asks a real API server about new objects at the same time, so that TakeIn does not wait for each of them. Without
// a real API server it does nothing.
func (k *Kind) Ahead(docs []any) {
	if k.Server == nil {
		return
	}
	sent := map[Digest]any{}
	for _, doc := range docs {
		raw := tree.Encode(k.AsSent(doc, false))
		if _, known := k.Memory.objects.get(DigestOf(raw)); known {
			continue
		}
		if decoded, err := tree.Decode(raw); err == nil {
			sent[DigestOf(raw)] = decoded
		}
	}
	k.Server.askAll(sent)
}

// askAll asks about new objects at the same time, and keeps the answers for takeIn. It drops earlier answers.
func (s *RealServer) askAll(sent map[Digest]any) {
	s.early = make(map[Digest]answer, len(sent))
	var lock sync.Mutex // guards s.early
	var all sync.WaitGroup
	slots := make(chan struct{}, mostAtOnce)
	for key, doc := range sent {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			a := s.ask(admissionv1.Create, s.bare(doc), nil)
			lock.Lock()
			defer lock.Unlock()
			s.early[key] = a
		})
	}
	all.Wait()
}
