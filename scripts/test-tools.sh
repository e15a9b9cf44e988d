#!/usr/bin/env bash
# Installs what the tests need beyond Go and Node: a C compiler for the race
# detector, a Redis for the fleet's retry budget. Uses apt-get, as root; elsewhere it says what to install.
set -euo pipefail

need() { # need COMMAND PACKAGE
	command -v "$1" >/dev/null 2>&1 && return
	if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null 2>&1; then
		echo "make test needs $1: install the package $2 (as root: apt-get install $2) and run it again" >&2
		exit 1
	fi
	apt-get update -q && apt-get install -y -q --no-install-recommends "$2"
}

need gcc gcc
need redis-server redis-server
[ -e /usr/include/stdlib.h ] || need c89-gcc libc6-dev
