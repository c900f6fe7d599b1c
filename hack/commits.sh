#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Checks the subjects of the commits after the one recorded below: at most 72 characters, and a
# scope, as in "chain: return a typed reason for a skipped webhook". Warns of a subject that is not
# an imperative. Earlier commits are left as they are.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
first=c5f37c40

if ! git merge-base --is-ancestor "$first" HEAD 2>/dev/null; then
	echo "commits: $first is not in this history (a shallow clone?), so the last commit is checked" >&2
	range=(-1 HEAD)
else
	range=("$first..HEAD")
fi

failed=0
while IFS= read -r subject; do
	if ((${#subject} > 72)); then
		failed=1
		echo "commits: ${#subject} characters, 72 are allowed: $subject" >&2
	fi
	if [[ ! $subject =~ ^(Revert\ \"|[^:]+:\ [^\ ]) ]]; then
		failed=1
		echo "commits: no scope, as in 'chain: …': $subject" >&2
	fi
	if [[ $subject =~ :\ [a-z]+(ed|ing)\  || $subject == *. ]]; then
		echo "commits: warning: write an imperative without a full stop: $subject" >&2
	fi
done < <(git log --no-merges --format=%s "${range[@]}")
[[ $failed == 0 ]] || { echo "commits: 'git rebase -i' with 'reword' changes a subject" >&2; exit 1; }
