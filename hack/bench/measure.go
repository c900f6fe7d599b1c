// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"syscall"
	"time"

	"github.com/admitkit/admitkit/hack/bench/subject"
	"github.com/admitkit/admitkit/hack/bench/wire"
)

// A Figure is the cost of one call of a [subject.Subject]. Each value is the median of all rounds.
type Figure struct {
	Row, Size, Candidate, Shape string
	BodyBytes                   int
	WallNS, CPUNS               float64
	Bytes, Allocs               float64
	// Ratio is the time of controller-runtime divided by the time of the subject: the median over all rounds, and
	// the quartiles. RatioCPU is the median ratio of the CPU times.
	Ratio, RatioLow, RatioHigh float64
	RatioCPU                   float64
	// Net is the ratio after the cost of the benchmark itself was subtracted from both times.
	Net float64
}

// A sample is the average cost of a call in one time slice, in which one subject is called again and again.
type sample struct{ wall, cpu, bytes, allocs float64 }

// measureRow measures the subjects of a row in turns, so a slow period of the machine affects all of them.
func measureRow(row *subject.Row, rounds int, slice time.Duration) ([]Figure, error) {
	calls := make([]int, len(row.Subjects))
	for i, s := range row.Subjects {
		n, err := calibrate(s, slice)
		if err != nil {
			return nil, fmt.Errorf("%s %s, %s: %w", row.Size, row.Name, s.Name(), err)
		}
		calls[i] = n
	}
	samples := make([][]sample, len(row.Subjects))
	harness := row.Harness()
	for range rounds {
		for i, s := range row.Subjects {
			samples[i] = append(samples[i], takeSlice(s, calls[i]))
		}
	}
	figures := make([]Figure, len(row.Subjects))
	for i, s := range row.Subjects {
		figures[i] = summary(samples[i], samples[row.Baseline(i)], samples[harness])
		f := &figures[i]
		f.Row, f.Size, f.Candidate, f.Shape, f.BodyBytes = row.Name, row.Size, s.Candidate, s.Shape, len(s.Body)
	}
	return figures, nil
}

// calibrate warms a subject up and returns the number of calls that fill a slice. It returns at least three,
// unless one call takes longer than the slice.
func calibrate(s *subject.Subject, slice time.Duration) (int, error) {
	if code := s.Call().Code; code != http.StatusOK {
		return 0, fmt.Errorf("HTTP %d", code)
	}
	for n := 1; ; n *= 2 {
		took := time.Duration(takeSlice(s, n).wall * float64(n))
		if took > slice/2 || took > 2*time.Millisecond {
			n = int(float64(n) * float64(slice) / float64(took))
			if n < 3 && took < slice {
				return 3, nil
			}
			return max(n, 1), nil
		}
	}
}

func takeSlice(s *subject.Subject, calls int) sample {
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start, cpu := time.Now(), processCPU()
	for range calls {
		s.Call()
	}
	wall, used := time.Since(start), processCPU()-cpu
	runtime.ReadMemStats(&after)
	n := float64(calls)
	return sample{
		wall: float64(wall.Nanoseconds()) / n, cpu: float64(used.Nanoseconds()) / n,
		bytes: float64(after.TotalAlloc-before.TotalAlloc) / n, allocs: float64(after.Mallocs-before.Mallocs) / n,
	}
}

// processCPU returns the CPU time of this process, including background garbage collection.
func processCPU() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func summary(own, baseline, harness []sample) Figure {
	var ratios, cpuRatios, net []float64
	for i := range own {
		if rest := own[i].wall - harness[i].wall; rest > 0 { // for the harness itself, nothing is left
			net = append(net, (baseline[i].wall-harness[i].wall)/rest)
		}
		ratios = append(ratios, baseline[i].wall/own[i].wall)
		cpuRatios = append(cpuRatios, baseline[i].cpu/own[i].cpu)
	}
	slices.Sort(ratios)
	of := func(part func(sample) float64) float64 {
		var all []float64
		for _, s := range own {
			all = append(all, part(s))
		}
		return wire.Median(all)
	}
	return Figure{
		WallNS: of(func(s sample) float64 { return s.wall }), CPUNS: of(func(s sample) float64 { return s.cpu }),
		Bytes: of(func(s sample) float64 { return s.bytes }), Allocs: of(func(s sample) float64 { return s.allocs }),
		Ratio: wire.Median(ratios), RatioLow: ratios[len(ratios)/4], RatioHigh: ratios[len(ratios)-1-len(ratios)/4],
		RatioCPU: wire.Median(cpuRatios), Net: wire.Median(net),
	}
}
