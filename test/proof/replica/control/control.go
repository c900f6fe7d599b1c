// SPDX-License-Identifier: Apache-2.0

// Package control is what a proof and the replicas it starts say to each other: [Settings] go
// to standard input, [Hello] comes from standard output once the replica listens, and [Stats]
// are served over plain HTTP for as long as the process lives. A replica whose standard input
// ends stops at once, so that none outlives its proof.
package control

import (
	"time"

	"github.com/admitkit/admitkit/pkg/webhook"
)

// Servers that a replica can serve its hooks with.
const (
	Admitkit          = "admitkit"
	Abrupt            = "abrupt"             // net/http, closed at SIGTERM
	ControllerRuntime = "controller-runtime" // with the context that SIGTERM ends
)

// Where a replica has its certificate from.
const (
	Static      = "static"
	SelfManaged = "self-managed"
	Naive       = "naive" // replaces CA, certificate and caBundle at once, as others do
)

// Settings say how a replica serves.
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

// Rotation is for the certificates that replicas make themselves.
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

// StatsPath serves the Stats; with ?gc=1 memory that is free goes back to the system first.
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
