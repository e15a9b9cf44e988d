#!/usr/bin/env bash
# Installs what the tests need beyond Go and Node: a C compiler for the race
# detector, a Redis for the fleet's retry budget, a PostgreSQL for side effects, a Prometheus and an
# Alertmanager to scrape and page, a Chromium to look at the pages. Uses apt-get, as root; elsewhere it says what to install.
set -euo pipefail

need() { # need COMMAND PACKAGE
	command -v "$1" >/dev/null 2>&1 && return
	if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null 2>&1; then
		echo "make test needs $1: install the package $2 (as root: apt-get install $2) and run it again" >&2
		exit 1
	fi
	apt-get update -q && apt-get install -y -q --no-install-recommends "$2"
}

made=()
trap 'rm -f "${made[@]}"' EXIT

# program COMMAND PACKAGE: one whose package starts a service; the tests start their own.
program() {
	if ! command -v "$1" >/dev/null 2>&1 && [ -d /usr/sbin ] && [ ! -e /usr/sbin/policy-rc.d ] && [ "$(id -u)" = 0 ]; then
		printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d
		chmod +x /usr/sbin/policy-rc.d
		made+=(/usr/sbin/policy-rc.d)
	fi
	need "$1" "$2"
}

# The package would also make a cluster and start it. Its programs are not on the PATH.
postgresql() {
	for p in /usr/lib/postgresql/*/bin/postgres; do
		[ -x "$p" ] && return
	done
	local conf=/etc/postgresql-common/createcluster.d/retrylens-tests.conf
	if [ "$(id -u)" = 0 ]; then
		mkdir -p "${conf%/*}"
		echo 'create_main_cluster = false' >"$conf"
		made+=("$conf")
	fi
	program postgres postgresql
}

need gcc gcc
need redis-server redis-server
postgresql
need chromium chromium
program prometheus prometheus
program prometheus-alertmanager prometheus-alertmanager
[ -e /usr/include/stdlib.h ] || need c89-gcc libc6-dev
