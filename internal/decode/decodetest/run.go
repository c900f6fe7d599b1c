// SPDX-License-Identifier: Apache-2.0

package decodetest

import (
	"fmt"
	"os"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// The environment variables with the number of cases and the first seed.
const (
	casesVariable = "ADMITKIT_DECODE_CASES"
	seedVariable  = "ADMITKIT_DECODE_SEED"
)

// Run compares the decoder with sigs.k8s.io/json on random cases and reports the first that differs, after shrinking it.
// ADMITKIT_DECODE_CASES sets the number of cases, ADMITKIT_DECODE_SEED the first seed.
func Run(t *testing.T, unmarshal Unmarshal) {
	t.Helper()
	cases, long := number(t, casesVariable, 4000)
	seed, _ := number(t, seedVariable, 1)
	var (
		wg     sync.WaitGroup
		next   = make(chan int64)
		totals = counts{types: map[reflect.Type]bool{}}
		start  = time.Now()
	)
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for seed := range next {
				c := NewCase(seed)
				accepted, err := compare(unmarshal, c.Type, c.Doc)
				if err != nil {
					t.Error(Report(unmarshal, c, err))
				}
				totals.add(c, accepted)
			}
		})
	}
	for i := range cases {
		if t.Failed() {
			break
		}
		next <- seed + i
		if step := max(1, cases/50); long && (i+1)%step == 0 {
			fmt.Fprintf(os.Stderr, "decode: %d of %d documents, %s\n", i+1, cases, time.Since(start).Round(time.Second))
		}
	}
	close(next)
	wg.Wait()
	t.Log(&totals)
	if cases >= 1000 && totals.accepted*3 < totals.cases {
		t.Errorf("only %d of %d documents were accepted: the damage makes too many documents invalid", totals.accepted, totals.cases)
	}
}

func number(t *testing.T, variable string, fallback int64) (n int64, set bool) {
	t.Helper()
	text, set := os.LookupEnv(variable)
	if !set {
		return fallback, false
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return n, true
}

// counts are statistics that show that not all cases were trivial.
type counts struct {
	lock            sync.Mutex
	cases, accepted int
	bytes           int
	types           map[reflect.Type]bool
}

func (n *counts) add(c Case, accepted bool) {
	n.lock.Lock()
	defer n.lock.Unlock()
	n.cases++
	n.bytes += len(c.Doc)
	n.types[c.Type] = true
	if accepted {
		n.accepted++
	}
}

func (n *counts) String() string {
	return fmt.Sprintf("%d documents of %d types, %d bytes each, %d accepted", n.cases, len(n.types), n.bytes/max(1, n.cases), n.accepted)
}

// Report shrinks a case that failed with err. It returns a description of the smaller case, with the variables that
// reproduce the failure.
func Report(unmarshal Unmarshal, c Case, err error) string {
	small := Shrink(c, func(t reflect.Type, doc []byte) bool { return Compare(unmarshal, t, doc) != nil })
	if again := Compare(unmarshal, small.Type, small.Doc); again != nil {
		err = again
	}
	return fmt.Sprintf("%s=%d %s=1 reproduces:\n%v\n  type     %s\n  within   %s\n  damage   %s\n  document %.2000q",
		seedVariable, c.Seed, casesVariable, err, small.Type, c.Type, strings.Join(c.Damage, "; "), small.Doc)
}
