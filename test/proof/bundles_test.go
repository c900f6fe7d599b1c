// SPDX-License-Identifier: Apache-2.0

package proof

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// bundles records the caBundles that a configuration has had.
type bundles struct {
	read func(context.Context) ([]byte, error)

	mu       sync.Mutex
	versions []version
	seen     map[[32]byte]bool // by SHA-256 of a certificate: whether the newest bundle has it
	dropped  int               // certificates that the newest bundle lacks
}

// A version is a caBundle and the times of the reads that returned it. first is the time at which the first of these
// reads ended, and last the time at which the last one began.
type version struct {
	bundle      []byte
	first, last time.Time
}

// watchBundles reads both configurations of the service repeatedly until the end of the test.
func watchBundles(t *testing.T, s *service) []*bundles {
	t.Helper()
	api := clients.AdmissionregistrationV1()
	all := []*bundles{
		{read: func(ctx context.Context) ([]byte, error) {
			c, err := api.MutatingWebhookConfigurations().Get(ctx, s.namespace, metav1.GetOptions{})
			if err != nil {
				return nil, err
			}
			return c.Webhooks[0].ClientConfig.CABundle, nil
		}},
		{read: func(ctx context.Context) ([]byte, error) {
			c, err := api.ValidatingWebhookConfigurations().Get(ctx, s.namespace, metav1.GetOptions{})
			if err != nil {
				return nil, err
			}
			return c.Webhooks[0].ClientConfig.CABundle, nil
		}},
	}
	ctx, cancel := context.WithCancel(t.Context())
	var watching sync.WaitGroup
	for _, b := range all {
		b.seen = map[[32]byte]bool{}
		watching.Go(func() { b.watch(ctx) })
	}
	t.Cleanup(func() {
		cancel()
		watching.Wait()
	})
	return all
}

func (b *bundles) watch(ctx context.Context) {
	ticker := time.NewTicker(30 * time.Millisecond)
	defer ticker.Stop()
	for {
		asked := time.Now()
		if bundle, err := b.read(ctx); err == nil {
			b.record(bundle, asked)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// record adds a bundle that a read returned. The read began at the time asked.
func (b *bundles) record(bundle []byte, asked time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n := len(b.versions); n > 0 && bytes.Equal(b.versions[n-1].bundle, bundle) {
		b.versions[n-1].last = asked
		return
	}
	b.versions = append(b.versions, version{bundle, time.Now(), asked})
	for id := range b.seen {
		b.seen[id] = false
	}
	for rest := bundle; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		b.seen[sha256.Sum256(block.Bytes)] = true
	}
	b.dropped = 0
	for _, trusted := range b.seen {
		if !trusted {
			b.dropped++
		}
	}
}

// rotations returns the number of CAs that are no longer in the bundle.
func (b *bundles) rotations() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.dropped
}

// at returns the newest bundle that was first read before the time.
func (b *bundles) at(when time.Time) (version, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := len(b.versions) - 1; i >= 0; i-- {
		if v := b.versions[i]; !v.first.After(when) && len(v.bundle) > 0 {
			return v, true
		}
	}
	return version{}, false
}

// age returns the longest time for which the configuration may have had a newer version than v.
func (b *bundles) age(v version) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	newest := b.versions[len(b.versions)-1]
	if newest.first.Equal(v.first) {
		return 0
	}
	for i := range b.versions {
		if b.versions[i].first.Equal(v.first) {
			return time.Since(b.versions[i].last)
		}
	}
	return 0
}

// An observer makes TLS handshakes with every replica in use, as another API server would. It uses a new caBundle after
// a delay below the settle time. Its clock differs from that of the replicas by less than the allowed skew.
type observer struct {
	samples
	late atomic.Int64 // handshakes not counted, because the bundle was outdated for longer than the settle time
}

func startObserver(t *testing.T, s *service, b *bundles, name string) *observer {
	t.Helper()
	o, random := &observer{}, newRandom(name+" of "+t.Name())
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	settle, skew := s.settings.Rotation.Settle, s.settings.Rotation.Skew
	go func() {
		defer close(done)
		ticker := time.NewTicker(100 * time.Millisecond)
		defer ticker.Stop()
		for {
			lag := time.Duration(random.Int64N(int64(settle)))
			offset := time.Duration(random.Int64N(2*int64(skew))) - skew
			if v, ok := b.at(time.Now().Add(-lag)); ok {
				for _, p := range s.inUse() {
					o.visit(p, s.host, b, v, settle, offset)
				}
			}
			select {
			case <-ticker.C:
			case <-ctx.Done():
				return
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return o
}

// visit makes one handshake with a replica.
func (o *observer) visit(p *process, host string, b *bundles, v version, settle, offset time.Duration) {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(v.bundle)
	start := time.Now()
	conn, err := tls.DialWithDialer(&net.Dialer{Timeout: 10 * time.Second}, "tcp", p.hello.Hooks, &tls.Config{
		RootCAs: roots, ServerName: host, Time: func() time.Time { return time.Now().Add(offset) },
	})
	if err == nil {
		_ = conn.Close()
	}
	if p.doomed.Load() {
		return
	}
	if age := b.age(v); age > settle {
		o.late.Add(1)
		return
	} else if err != nil {
		err = fmt.Errorf("replica %s, outdated for %s, clock %+.1fs: %w", p.name, age.Round(time.Millisecond), offset.Seconds(), err)
	}
	o.add(start, err)
}
