// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"time"

	"github.com/admitkit/admitkit/hack/bench/subject"
)

const layout = "%-6s %-15s %-28s %9s %9s %9s %8s  %7s %-13s %7s  %s\n"

func printRow(w io.Writer, figures []Figure) {
	fmt.Fprintf(w, layout, "size", "row", "handler", "time", "CPU", "bytes", "allocs", "ratio", "(middle half)", "CPU", "target")
	for _, f := range figures {
		name, ratio, spread, cpu, target := f.Candidate, "", "", "", ""
		if f.Shape != "" {
			name += " " + f.Shape
		}
		if f.Candidate != subject.Baseline && f.Candidate != subject.Floor {
			ratio, cpu = fmt.Sprintf("%.1fx", f.Ratio), fmt.Sprintf("%.1fx", f.RatioCPU)
			spread = fmt.Sprintf("(%.1f - %.1f)", f.RatioLow, f.RatioHigh)
			target = against(f)
		}
		fmt.Fprintf(w, layout, f.Size, f.Row, name, duration(f.WallNS), duration(f.CPUNS), count(f.Bytes), fmt.Sprintf("%.0f", f.Allocs),
			ratio, spread, cpu, target)
	}
	fmt.Fprintln(w)
}

// against tells the target of a figure, if it has one, and whether it is met.
func against(f Figure) string {
	target, has := targets[[3]string{f.Row, f.Size, f.Shape}]
	switch {
	case !has || f.Candidate != subject.Admitkit:
		return ""
	case f.Ratio >= target:
		return fmt.Sprintf("%gx ✓", target)
	default:
		return fmt.Sprintf("%gx ✗", target)
	}
}

func duration(ns float64) string {
	if d := time.Duration(ns); d >= time.Millisecond {
		return fmt.Sprintf("%.2f ms", float64(d)/1e6)
	}
	return fmt.Sprintf("%.1f µs", ns/1e3)
}

func count(bytes float64) string {
	switch {
	case bytes >= 1e6:
		return fmt.Sprintf("%.2f MB", bytes/1e6)
	case bytes >= 1e3:
		return fmt.Sprintf("%.1f KB", bytes/1e3)
	default:
		return fmt.Sprintf("%.0f B", bytes)
	}
}
