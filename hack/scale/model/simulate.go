// SPDX-License-Identifier: Apache-2.0

// Package model simulates the calls of several API servers to the replicas of a webhook: which connections they open, and
// which replicas get the calls.
package model

import (
	"container/heap"
	"math/rand/v2"
	"slices"
	"time"
)

// Facts about the client of the API server. It uses HTTP/1.1 for Services (k8s.io/apiserver/pkg/util/webhook), so a
// connection carries one call at a time.
const (
	mostIdle    = 25               // idle connections to one host: idleConnsPerHost in k8s.io/client-go/transport
	idleTimeout = 90 * time.Second // of an idle connection: SetTransportDefaults in k8s.io/apimachinery/pkg/util/net
)

// A Balance says how a replica is chosen.
type Balance int

const (
	// AtRandom chooses a random replica for each new connection, as kube-proxy does.
	AtRandom Balance = iota
	// InTurn chooses the next replica for each new connection.
	InTurn
	// PerCall chooses a random replica for each call. The API server of Kubernetes 1.37 does so with
	// --enable-aggregator-routing; see WebhookRoundTripLoadBalancing.
	PerCall
)

// Settings describe the API servers, the webhook and its calls.
type Settings struct {
	APIServers int
	Hooks      int // hooks that each request calls one after the other, each with its own connections; 1 if 0
	Replicas   int
	Rate       float64       // requests per second of all API servers together, at random times
	Call       time.Duration // a call without the handshake
	Fixed      bool          // all calls take the same time; otherwise it is distributed exponentially
	Handshake  time.Duration
	Balance    Balance
	// MaxConnectionAge is the age after which an answer closes its connection, a tenth more or less. With 0, no answer does.
	MaxConnectionAge time.Duration
	// Replace is the time between the starts of two new replicas, each of which replaces one. They start after Warmup. With
	// 0, no replica is replaced.
	Replace time.Duration
	Warmup  time.Duration // time at the start that does not count
	Settle  time.Duration // time after the last new replica that does not count
	Count   time.Duration // time that counts
	Seed    uint64
}

// A Result counts what happened in Settings.Count.
type Result struct {
	Calls       []int     // by replica
	Open        []float64 // mean number of open connections, by replica
	InFlight    []int     // most calls at the same time, by replica
	Connections int       // that were opened
}

// Busiest returns the calls of the busiest replica as a multiple of the mean.
func (r *Result) Busiest() float64 {
	total := 0
	for _, n := range r.Calls {
		total += n
	}
	if total == 0 {
		return 0
	}
	return float64(slices.Max(r.Calls)) * float64(len(r.Calls)) / float64(total)
}

// Simulate runs the model. Equal settings give equal results.
func Simulate(s Settings) *Result {
	w := &world{Settings: s, random: rand.New(rand.NewPCG(s.Seed, s.Seed)), pools: map[place]*pool{}}
	w.Hooks = max(w.Hooks, 1)
	for range s.Replicas {
		w.replicas = append(w.replicas, &replica{})
	}
	w.start = s.Warmup
	if s.Replace > 0 {
		for i := range s.Replicas {
			w.at(s.Warmup+time.Duration(i)*s.Replace, w.replaceOldest)
		}
		w.start += time.Duration(s.Replicas-1)*s.Replace + s.Settle
	}
	w.at(w.start, w.startCounting)
	w.nextRequest()
	for end := w.start + s.Count; ; {
		e := heap.Pop(&w.events).(event)
		if w.now = e.at; w.now >= end {
			return w.result(end)
		}
		e.do()
	}
}

// A world is the state of a simulation.
type world struct {
	Settings
	random   *rand.Rand
	now      time.Duration
	start    time.Duration // when the results begin to count
	events   events
	order    int // of the events, so that those at one time stay in order
	replicas []*replica
	pools    map[place]*pool
	all      []*pool // in the order of their creation
	turn     int
	opened   int
}

// A replica serves calls.
type replica struct {
	ended    bool // it closes its connections when they are idle
	calls    int
	inFlight int
	most     int
	open     int
	openTime float64 // open connections, summed up over the seconds
	changed  time.Duration
}

// A place identifies a pool: the client of an API server for a hook, and the replica if the client resolves it for each call.
type place struct {
	server, hook int
	replica      *replica
}

// A pool has the connections of one client to one host.
type pool struct {
	idle    []*connection // the last one is used first, as in net/http
	waiting []*call
}

type connection struct {
	replica   *replica
	expires   time.Duration // an answer after this time closes the connection
	idleSince time.Duration
}

// A call waits for a connection, or has got one.
type call struct {
	server, hook int
	served       bool
}

// nextRequest sends the next request after a random time, to a random API server, and then further ones.
func (w *world) nextRequest() {
	between := w.random.ExpFloat64() / w.Rate
	server := w.random.IntN(w.APIServers)
	w.in(time.Duration(between*float64(time.Second)), func() {
		w.begin(&call{server: server})
		w.nextRequest()
	})
}

// begin sends a call over an idle connection. If there is none, it opens one, and the call uses the first connection that
// becomes idle.
func (w *world) begin(c *call) {
	at := place{server: c.server, hook: c.hook}
	var to *replica
	if w.Balance == PerCall {
		to = w.choose()
		at.replica = to
	}
	p := w.pools[at]
	if p == nil {
		p = &pool{}
		w.pools[at], w.all = p, append(w.all, p)
	}
	for len(p.idle) > 0 {
		last := p.idle[len(p.idle)-1]
		p.idle = p.idle[:len(p.idle)-1]
		if last.replica.ended || w.now-last.idleSince > idleTimeout {
			w.close(last, min(w.now, last.idleSince+idleTimeout))
			continue
		}
		w.serve(p, last, c)
		return
	}
	p.waiting = append(p.waiting, c)
	w.in(w.Handshake, func() {
		if to == nil || to.ended {
			to = w.choose()
		}
		opened := w.open(to)
		if c.served {
			w.release(p, opened)
			return
		}
		p.waiting = slices.DeleteFunc(p.waiting, func(o *call) bool { return o == c })
		w.serve(p, opened, c)
	})
}

func (w *world) serve(p *pool, on *connection, c *call) {
	c.served = true
	r := on.replica
	r.calls++
	r.inFlight++
	r.most = max(r.most, r.inFlight)
	took := w.Call
	if !w.Fixed {
		took = time.Duration(w.random.ExpFloat64() * float64(w.Call))
	}
	w.in(took, func() {
		r.inFlight--
		w.release(p, on)
		if c.hook+1 < w.Hooks {
			w.begin(&call{server: c.server, hook: c.hook + 1})
		}
	})
}

// release gives a connection to a waiting call, or makes it idle. It closes the connection if it is old.
func (w *world) release(p *pool, c *connection) {
	switch {
	case c.replica.ended, c.expires > 0 && w.now >= c.expires:
		w.close(c, w.now)
	case len(p.waiting) > 0:
		next := p.waiting[0]
		p.waiting = p.waiting[1:]
		w.serve(p, c, next)
	case len(p.idle) >= mostIdle:
		w.close(c, w.now)
	default:
		c.idleSince = w.now
		p.idle = append(p.idle, c)
	}
}

func (w *world) open(r *replica) *connection {
	w.opened++
	r.sum(w.now)
	r.open++
	c := &connection{replica: r}
	if w.MaxConnectionAge > 0 {
		c.expires = w.now + time.Duration(float64(0.9+float64(0.2*w.random.Float64()))*float64(w.MaxConnectionAge))
	}
	return c
}

// close closes a connection. The time may be earlier than now: idle connections end unnoticed.
func (w *world) close(c *connection, at time.Duration) {
	r := c.replica
	r.sum(w.now)
	r.openTime -= max(w.now-max(at, w.start), 0).Seconds()
	r.open--
}

// sum adds the open connections since the last change.
func (r *replica) sum(now time.Duration) {
	r.openTime += float64(float64(r.open) * (now - r.changed).Seconds()) // not fused, so that all platforms agree
	r.changed = now
}

func (w *world) choose() *replica {
	if w.Balance == InTurn {
		w.turn++
		return w.replicas[w.turn%len(w.replicas)]
	}
	return w.replicas[w.random.IntN(len(w.replicas))]
}

// replaceOldest starts a replica and ends the oldest one. A real server closes its idle connections when it ends, which
// begin does here.
func (w *world) replaceOldest() {
	w.replicas[0].ended = true
	w.replicas = append(w.replicas[1:], &replica{changed: w.now})
}

func (w *world) startCounting() {
	w.opened = 0
	for _, r := range w.replicas {
		r.calls, r.most, r.openTime, r.changed = 0, r.inFlight, 0, w.now
	}
}

func (w *world) result(end time.Duration) *Result {
	out := &Result{Connections: w.opened}
	for _, p := range w.all {
		for _, c := range p.idle {
			if c.replica.ended || end-c.idleSince > idleTimeout {
				w.now = end
				w.close(c, min(end, c.idleSince+idleTimeout))
			}
		}
	}
	for _, r := range w.replicas {
		r.sum(end)
		out.Calls = append(out.Calls, r.calls)
		out.Open = append(out.Open, r.openTime/w.Count.Seconds())
		out.InFlight = append(out.InFlight, r.most)
	}
	return out
}

// An event happens at a time.
type event struct {
	at    time.Duration
	order int
	do    func()
}

func (w *world) at(when time.Duration, do func()) {
	w.order++
	heap.Push(&w.events, event{when, w.order, do})
}

func (w *world) in(after time.Duration, do func()) { w.at(w.now+after, do) }

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].order < e[j].order
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}
