// SPDX-License-Identifier: Apache-2.0

package install

import (
	"errors"
	"sync"
	"time"
)

// A Phase is how far an [Installer] has come. What became of the configurations later it says only
// where [Installer.Watch] looks.
type Phase string

// The phases.
const (
	Idle        Phase = "idle"         // nothing was asked of it
	Installing  Phase = "installing"   // not everything is stored yet
	FailingOpen Phase = "failing_open" // all is stored, but some webhooks have Ignore until they are promoted
	Installed   Phase = "installed"    // all is stored, with the failurePolicy of each registration
	Superseded  Phase = "superseded"   // another program installs, or another version
	Removed     Phase = "removed"      // the configurations were taken away, or webhooks of them
)

// A Status is what an [Installer] does, for metrics and people.
type Status struct {
	Phase Phase
	// Since is when the phase began, zero for Idle.
	Since time.Time
	// Err is what was in the way last, nil if nothing was.
	Err error
}

// Status returns how far the installation has come.
func (i *Installer) Status() Status {
	i.status.mu.Lock()
	defer i.status.mu.Unlock()
	return i.status.now
}

// A progress is a status as it changes.
type progress struct {
	mu  sync.Mutex
	now Status
}

// enters begins a phase, unless it has begun.
func (p *progress) enters(to Phase) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.now.Phase != to {
		p.now.Phase, p.now.Since = to, time.Now()
	}
}

// begins notes an attempt to install. A repeated one loses nothing that there is: it is Installing
// again when it finds that something lacks.
func (p *progress) begins() {
	p.mu.Lock()
	at := p.now.Phase
	p.mu.Unlock()
	if at != FailingOpen && at != Installed {
		p.enters(Installing)
	}
}

// stored notes that everything is.
func (p *progress) stored(open bool) {
	if open {
		p.enters(FailingOpen)
	} else {
		p.enters(Installed)
	}
}

// waits notes what is in the way.
func (p *progress) waits(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now.Err = err
}

// told notes what came of it, and returns that.
func (p *progress) told(err error) error {
	p.waits(err)
	switch {
	case errors.Is(err, ErrSuperseded):
		p.enters(Superseded)
	case errors.Is(err, ErrRemoved):
		p.enters(Removed)
	}
	return err
}
