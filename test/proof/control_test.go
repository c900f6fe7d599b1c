// SPDX-License-Identifier: Apache-2.0

package proof

// This file defines the protocol between a proof and its replicas. The proof writes Settings to the standard input of a
// replica. The replica writes Hello to standard output when it listens, and serves Stats over plain HTTP. The
// replica stops at once when its standard input ends, so it never outlives the proof.

import (
	"time"

	"github.com/admitkit/admitkit/pkg/webhook"
)

// Servers of a replica.
const (
	Admitkit          = "admitkit"
	Abrupt            = "abrupt"             // net/http, closed at SIGTERM
	ControllerRuntime = "controller-runtime" // SIGTERM cancels its context
)

// Certificate sources of a replica.
const (
	Static      = "static"
	SelfManaged = "self-managed"
	Naive       = "naive" // replaces CA, certificate and caBundle without a transition
)

// Settings configure a replica.
type Settings struct {
	Name      string
	Namespace string        // the hooks are called for its objects
	Pause     time.Duration // duration of each call
	Server    string

	ShutdownDelay, DrainTimeout  time.Duration
	MaxInFlight, MaxConnections  int
	MaxInFlightBytes, MemoryGoal int64 // MemoryGoal is GOMEMLIMIT in bytes
	MaxConnectionAge             time.Duration

	Certificates string
	Cert, Key    []byte // PEM, for Static
	Rotation     Rotation
}

// Rotation configures the sources SelfManaged and Naive.
type Rotation struct {
	Kubeconfig        []byte
	Namespace, Secret string
	Hosts             []string
	Configuration     string // name of both webhook configurations
	CALifetime        time.Duration
	LeafLifetime      time.Duration
	Settle, Skew      time.Duration
	Interval          time.Duration
	MaxLag            time.Duration // longest delay of a request to the API server, and of its response
	Seed              uint64
}

// Hello has the addresses of a replica.
type Hello struct {
	Hooks string // host:port, with TLS
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
