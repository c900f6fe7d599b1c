#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs every fuzz target of the repository for the time given, also after one has failed:
#
#   hack/fuzz.sh 5m
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
duration=${1:?usage: fuzz.sh DURATION}

packages=$(grep -rl --include='*_test.go' --exclude-dir=.cache '^func Fuzz' . | xargs -r -n1 dirname | sort -u)
[[ -n $packages ]] || { echo "no fuzz targets"; exit 0; }
failed=()
for package in $packages; do
	for target in $(go test -list '^Fuzz' "$package" | grep '^Fuzz'); do
		echo "== $package $target ($duration)"
		go test -run '^$' -fuzz "^$target\$" -fuzztime "$duration" "$package" || failed+=("$package $target")
	done
done
((${#failed[@]} == 0)) || { printf 'failed: %s\n' "${failed[@]}"; exit 1; }
