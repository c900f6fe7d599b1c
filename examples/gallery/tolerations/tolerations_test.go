// SPDX-License-Identifier: Apache-2.0

package tolerations

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

func exists(key string) corev1.Toleration {
	return corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}
}

func TestCovers(t *testing.T) {
	seconds := func(n int64) *int64 { return &n }
	equals := corev1.Toleration{Key: "a", Operator: corev1.TolerationOpEqual, Value: "1"}
	evict := func(after *int64) corev1.Toleration {
		return corev1.Toleration{Key: "a", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: after}
	}
	rows := []struct {
		reason  string
		wide, t corev1.Toleration
		want    bool
	}{
		{"equal", equals, equals, true},
		{"another key", exists("a"), exists("b"), false},
		{"every key", corev1.Toleration{Operator: corev1.TolerationOpExists}, exists("b"), true},
		{"another effect", exists("a"), evict(nil), false},
		{"every value", corev1.Toleration{Key: "a", Operator: corev1.TolerationOpExists}, equals, true},
		{"no operator means Equal", corev1.Toleration{Key: "a", Value: "1"}, equals, true},
		{"another value", corev1.Toleration{Key: "a", Value: "2"}, equals, false},
		{"for longer", evict(seconds(60)), evict(seconds(61)), false},
		{"forever", evict(seconds(60)), evict(nil), false},
		{"for less time", evict(seconds(60)), evict(seconds(59)), true},
		{"numbers are not compared", corev1.Toleration{Key: "a", Operator: corev1.TolerationOpGt, Value: "1"}, equals, false},
	}
	for _, row := range rows {
		if got := Covers(row.wide, row.t); got != row.want {
			t.Errorf("%s: got %v", row.reason, got)
		}
	}
}

func TestMerge(t *testing.T) {
	every := corev1.Toleration{Operator: corev1.TolerationOpExists}
	rows := []struct {
		reason    string
		all, want []corev1.Toleration
	}{
		{"none", nil, nil},
		{"equal ones", []corev1.Toleration{exists("a"), exists("a")}, []corev1.Toleration{exists("a")}},
		{"covered by an earlier one", []corev1.Toleration{every, exists("a")}, []corev1.Toleration{every}},
		{"covered by a later one", []corev1.Toleration{exists("a"), exists("b"), every}, []corev1.Toleration{every}},
		{"different ones", []corev1.Toleration{exists("a"), exists("b")}, []corev1.Toleration{exists("a"), exists("b")}},
	}
	for _, row := range rows {
		if got := Merge(row.all); !equality.Semantic.DeepEqual(got, row.want) {
			t.Errorf("%s: got %v", row.reason, got)
		}
	}
}
