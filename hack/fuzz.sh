#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs every fuzz target of the repository for the given time. A failure does not end the script early:
#
#   hack/fuzz.sh 5m
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
duration=${1:?usage: fuzz.sh DURATION}

log=$(mktemp)
trap 'rm -f "$log"' EXIT

# run fuzzes one target. Go's fuzzer sometimes reports the end of its time as a failure without an input
# (golang/go#75804). The script ignores such a run and runs the target once more.
run() {
	local try
	for try in 1 2; do
		go test -run '^$' -fuzz "^$2\$" -fuzztime "$duration" "$1" 2>&1 | tee "$log" && return
		if grep -q 'Failing input written' "$log" || ! grep -qx ' *context deadline exceeded' "$log"; then
			return 1
		fi
		echo "== $1 $2: the fuzzer ended by itself in run $try, without a failing input (golang/go#75804)"
	done
	return 1
}

packages=$(grep -rl --include='*_test.go' --exclude-dir=.cache '^func Fuzz' . | xargs -r -n1 dirname | sort -u)
[[ -n $packages ]] || { echo "no fuzz targets"; exit 0; }
failed=()
for package in $packages; do
	for target in $(go test -list '^Fuzz' "$package" | grep '^Fuzz'); do
		echo "== $package $target ($duration)"
		run "$package" "$target" || failed+=("$package $target")
	done
done
((${#failed[@]} == 0)) || { printf 'failed: %s\n' "${failed[@]}"; exit 1; }
