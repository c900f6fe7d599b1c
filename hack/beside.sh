#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# usage: beside.sh LOG "TARGETS..." TARGETS...
#
# Makes the first TARGETS in the background and the others at the same time, because one test run alone
# leaves cores idle. Writes the output of the background targets to LOG and prints it at the end. Fails if a
# target failed. If a foreground target fails, the script ends the background targets and prints LOG.
set -euo pipefail
log=$1 first=$2
shift 2

set -m # gives the job a process group, which the trap ends as a whole
# shellcheck disable=SC2086 # one word for each target
make --no-print-directory $first >"$log" 2>&1 &
job=$!
trap 'kill -- -$job 2>/dev/null || true' EXIT
trap 'exit 130' INT TERM

status=0
make --no-print-directory "$@" || status=$?
if ((status)); then
	echo "--- $first: ended because another target failed:"
	cat "$log"
	exit "$status" # the trap ends the background target
fi
wait "$job" || status=$?
cat "$log"
exit "$status"
