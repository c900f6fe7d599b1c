#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Prints the path of a program that a test needs and that Debian packages:
#
#   hack/debian.sh PACKAGE PROGRAM
#
# If PROGRAM is not on PATH, and this runs as root on Debian or one of its kin, the package is
# installed; anybody else is told what to install.
set -euo pipefail

package=${1:?the name of the Debian package}
program=${2:?the name of the program}

if command -v "$program"; then exit 0; fi

if [[ $(id -u) != 0 ]] || ! command -v apt-get >/dev/null; then
	echo "debian: $program is not on PATH: install it (on Debian: sudo apt-get install $package)" >&2
	exit 1
fi

export DEBIAN_FRONTEND=noninteractive
install() { apt-get install --yes --quiet --no-install-recommends -o DPkg::Lock::Timeout=120 "$package" >&2; }
echo "debian: installing $package" >&2
# The lists of packages may be missing, or older than the archive is.
install || { apt-get update --quiet >&2 && install; } || {
	echo "debian: apt-get could not install $package, so there is no $program: its reasons are above" >&2
	exit 1
}
hash -r
command -v "$program" || {
	echo "debian: the package $package has no program $program" >&2
	exit 1
}
