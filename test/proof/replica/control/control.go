// SPDX-License-Identifier: Apache-2.0

// Package control is the protocol between a proof and its replicas. The proof writes [Settings] to standard input. The replica writes
// [Hello] to standard output when it listens, and serves [Stats] over plain HTTP. A replica whose standard input
// ends stops at once, so that none outlives its proof.
package control

import (
	"time"

	"github.com/admitkit/admitkit/pkg/webhook"
)

// The servers with which a replica can serve its hooks.
const (
	Admitkit          = "admitkit"
	Abrupt            = "abrupt"             // net/http, closed at SIGTERM
	ControllerRuntime = "controller-runtime" // with the context that SIGTERM ends
)

// The sources of a replica's certificate.
const (
	Static      = "static"
	SelfManaged = "self-managed"
	Naive       = "naive" // replaces CA, certificate and caBundle at once, as others do
)

// Settings configure a replica.
type Settings struct {
	Name      string
	Namespace string // of the objects that the hooks are asked about
	Pause     time.Duration
	Server    string

	ShutdownDelay, DrainTimeout  time.Duration
	MaxInFlight, MaxConnections  int
	MaxInFlightBytes, MemoryGoal int64 // MemoryGoal is the GOMEMLIMIT
	MaxConnectionAge             time.Duration

	Certificates string
	Cert, Key    []byte // in PEM, for Static
	Rotation     Rotation
}

// Rotation configures the certificates that replicas make themselves.
type Rotation struct {
	Kubeconfig        []byte
	Namespace, Secret string
	Hosts             []string
	Configuration     string // the name of both configurations
	CALifetime        time.Duration
	LeafLifetime      time.Duration
	Settle, Skew      time.Duration
	Interval          time.Duration
	MaxLag            time.Duration // what is asked and answered is held back up to this long
	Seed              uint64
}

// Hello tells where a replica listens.
type Hello struct {
	Hooks string // host:port, TLS
	Stats string // host:port, plain HTTP
}

// StatsPath serves the Stats. With ?gc=1 the replica first returns free memory to the system.
const StatsPath = "/stats"

// Stats is the state of a replica.
type Stats struct {
	Goroutines int
	HeapBytes  uint64
	Outcomes   map[webhook.Outcome]int
	Phase      string
	Rotations  int
	Renewals   int
	Trusted    bool
	Err        string
	NotAfter   time.Time
	CANotAfter time.Time
}
