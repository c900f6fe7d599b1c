#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# usage: beside.sh LOG TARGET TARGETS...
#
# Makes one target in the background, which takes what the others leave of the cores, and the
# others meanwhile. What the first printed goes to LOG and is shown when all are done. Fails if
# any of them did.
set -euo pipefail
log=$1 first=$2
shift 2

set -m # a process group of its own, so that all of it can be ended
make --no-print-directory "$first" >"$log" 2>&1 &
job=$!
trap 'kill -- -$job 2>/dev/null || true' EXIT
trap 'exit 130' INT TERM

status=0
make --no-print-directory "$@" || status=$?
if ((status)); then
	exit "$status" # the first is of no interest any more
fi
wait "$job" || status=$?
cat "$log"
exit "$status"
