// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// TestFilesProperty changes the files at random. The served pair must be one that the files contained at some time. If
// they have contained a valid pair, the served pair must be valid.
func TestFilesProperty(t *testing.T) {
	for seed := range uint64(15) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { filesProperty(t, rand.New(rand.NewPCG(seed, 0))) })
		})
	}
}

// A disk is a mount and the contents that the test expects in it.
type disk struct {
	*mount
	random    *rand.Rand
	pairs     []testPair
	cert, key int // the index of the pair in each file; negative means none
	been      map[int]bool
}

func filesProperty(t *testing.T, random *rand.Rand) {
	d := &disk{mount: newMount(t), random: random, been: map[int]bool{0: true}}
	d.pairs = []testPair{newPair(t, -time.Hour, 24*time.Hour)}
	for range 7 {
		from := time.Duration(random.IntN(200)-100) * time.Hour
		d.pairs = append(d.pairs, newPair(t, from, from+time.Duration(1+random.IntN(100))*time.Hour))
	}
	d.put(d.pairs[0])
	d.start("")
	var history []string
	served := 0
	for range 60 {
		history = append(history, d.disturb())
		d.tick()
		if d.cert == d.key && d.cert >= 0 {
			d.been[d.cert] = true
		}
		next := d.served()
		if problem := d.judge(served, next); problem != "" {
			t.Fatalf("%s: serves pair %d after %d, with %d and %d on disk\nhistory: %q", problem, next, served, d.cert, d.key, history)
		}
		served = next
	}
}

// disturb changes the files at random and describes the change.
func (d *disk) disturb() string {
	i := d.random.IntN(len(d.pairs))
	p := d.pairs[i]
	switch d.random.IntN(9) {
	case 0:
		d.write("tls.crt", p.cert)
		d.cert = i
		return fmt.Sprint("certificate ", i)
	case 1:
		d.write("tls.key", p.key)
		d.key = i
		return fmt.Sprint("key ", i)
	case 2, 3, 4:
		d.put(p)
		d.cert, d.key = i, i
		return fmt.Sprint("pair ", i)
	case 5:
		os.Remove(d.path("tls.crt"))
		d.cert = -1
		return "no certificate"
	case 6:
		d.write("tls.key", p.key[:d.random.IntN(len(p.key)-2)])
		d.key = -1
		return "part of a key"
	case 7:
		d.write("tls.crt", p.cert[:d.random.IntN(len(p.cert)-2)])
		d.cert = -1
		return "part of a certificate"
	}
	span := time.Duration(d.random.IntN(40)) * time.Hour
	<-time.After(span)
	return fmt.Sprint("wait ", span)
}

func (d *disk) served() int {
	d.t.Helper()
	c, err := d.source.GetCertificate(nil)
	if err != nil {
		d.t.Fatal(err)
	}
	for i, p := range d.pairs {
		if p.leaf.Equal(c.Leaf) {
			return i
		}
	}
	d.t.Fatal("serves something else")
	return 0
}

func (d *disk) judge(before, now int) string {
	onDisk := d.cert == d.key && d.cert >= 0
	st := d.source.Status()
	switch {
	case !d.been[now]:
		return "never was in the files"
	case d.valid(before) && !d.valid(now):
		return "gave up a valid one"
	case onDisk && d.valid(d.cert) && now != d.cert:
		return "a valid one is not served"
	case !onDisk && now != before && !d.been[now]:
		return "changed without a reason"
	case st.Trusted != d.valid(now):
		return fmt.Sprintf("Trusted is %v", st.Trusted)
	case st.Err == nil && (!onDisk || now != d.cert || !d.valid(now)):
		return "Status says that all is well"
	}
	return ""
}

func (d *disk) valid(i int) bool {
	leaf, now := d.pairs[i].leaf, time.Now()
	return !now.Before(leaf.NotBefore) && !now.After(leaf.NotAfter)
}
