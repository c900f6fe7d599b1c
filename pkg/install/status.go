// SPDX-License-Identifier: Apache-2.0

package install

import (
	"errors"
	"sync"
	"time"
)

// A Phase is the progress of an [Installer]. A later change of the configurations by another client changes the
// phase only while [Installer.Watch] runs.
type Phase string

// The phases.
const (
	Idle        Phase = "idle"         // no method was called yet
	Installing  Phase = "installing"   // not all webhooks are stored yet
	FailingOpen Phase = "failing_open" // all are stored, some with Ignore until they are promoted
	Installed   Phase = "installed"    // all are stored with the failurePolicy of their registrations
	Superseded  Phase = "superseded"   // another program or version installs
	Removed     Phase = "removed"      // the configurations or some of our webhooks were removed
)

// A Status is the state of an [Installer].
type Status struct {
	Phase Phase
	// Since is when the phase began, zero for Idle.
	Since time.Time
	// Err is the last error, nil if there was none.
	Err error
}

// A progress holds the current Status. It is safe for concurrent use.
type progress struct {
	mu  sync.Mutex
	now Status
}

func (p *progress) current() Status {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.now
}

// enters begins a phase unless it is the current one.
func (p *progress) enters(to Phase) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.now.Phase != to {
		p.now.Phase, p.now.Since = to, time.Now()
	}
}

// begins records an attempt to install. A repeated attempt keeps the phase until it finds that a webhook is
// missing.
func (p *progress) begins() {
	if at := p.current().Phase; at != FailingOpen && at != Installed {
		p.enters(Installing)
	}
}

// stored records that all webhooks are stored. If open is true, some of them have Ignore in place of Fail.
func (p *progress) stored(open bool) {
	if open {
		p.enters(FailingOpen)
	} else {
		p.enters(Installed)
	}
}

// waits records the error that delays the installation.
func (p *progress) waits(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now.Err = err
}

// ended records the result of an attempt and returns it.
func (p *progress) ended(err error) error {
	p.waits(err)
	switch {
	case errors.Is(err, ErrSuperseded):
		p.enters(Superseded)
	case errors.Is(err, ErrRemoved):
		p.enters(Removed)
	}
	return err
}
