// SPDX-License-Identifier: Apache-2.0

// Package keyedlock provides read-write locks that are identified by a string.
package keyedlock

import "sync"

// Locks has a read-write lock for each key. The zero value is ready to use.
type Locks struct {
	mu    sync.Mutex
	locks map[string]*lock
}

type lock struct {
	sync.RWMutex
	users int // goroutines that hold the lock or wait for it
}

// Lock locks a key and returns the function that unlocks it. A shared lock excludes only exclusive locks.
func (k *Locks) Lock(key string, shared bool) (unlock func()) {
	k.mu.Lock()
	if k.locks == nil {
		k.locks = map[string]*lock{}
	}
	l := k.locks[key]
	if l == nil {
		l = &lock{}
		k.locks[key] = l
	}
	l.users++
	k.mu.Unlock()
	release := l.RUnlock
	if shared {
		l.RLock()
	} else {
		l.Lock()
		release = l.Unlock
	}
	return func() {
		release()
		k.mu.Lock()
		defer k.mu.Unlock()
		if l.users--; l.users == 0 {
			delete(k.locks, key)
		}
	}
}
