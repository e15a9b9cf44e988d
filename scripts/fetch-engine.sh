#!/bin/sh
# Installs libchdb.so, the ClickHouse that bin/engine runs, in the user's cache:
#   ${XDG_CACHE_HOME:-$HOME/.cache}/retrylens/engine/RELEASE/libchdb.so
# The package and its integrity are pinned in internal/engine/npm, the checksum of
# the library here.  A second run downloads nothing and returns at once.
#
# Usage: scripts/fetch-engine.sh [--print]    --print: only tell where it goes
# Exit codes: 0 installed, 1 failed, 2 usage, 3 this platform is not supported
set -eu

release=26.7.3
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)

say() { printf 'fetch-engine: %s\n' "$*" >&2; }
die() {
	code=$1
	shift
	say "$*"
	exit "$code"
}

external='use an external ClickHouse server instead: --store clickhouse://...'

# platform sets npm_package and sum, or ends the script.
platform() {
	[ "$(uname -s)" = Linux ] || die 3 "the embedded engine needs Linux, this is $(uname -s); $external"
	if ! getconf GNU_LIBC_VERSION >/dev/null 2>&1; then
		die 3 "the embedded engine needs glibc, which this system (musl?) has not; $external"
	fi
	case $(uname -m) in
	x86_64 | amd64)
		npm_package=@chdb/lib-linux-x64-gnu
		sum=36ad4e999882821ef13cf2d0f52c93f48e6ee1b4498b35a201c23ce4b8d15bf5
		;;
	aarch64 | arm64)
		die 3 "no checksum of libchdb.so $release is pinned for arm64 yet; get the package" \
			"@chdb/lib-linux-arm64-gnu yourself and set RETRYLENS_CHDB to its libchdb.so, or $external"
		;;
	*) die 3 "there is no engine for $(uname -m); $external" ;;
	esac
}

cache=${XDG_CACHE_HOME:-}
case $cache in
/*) ;;
*) cache=${HOME:?fetch-engine: neither XDG_CACHE_HOME nor HOME is set}/.cache ;;
esac
dir=$cache/retrylens/engine/$release
lib=$dir/libchdb.so
# The stamp names checksum, size and mtime of the file that was verified.
stamp=$dir/verified

mark() { printf '%s %s\n' "$sum" "$(stat -c '%s %Y' "$lib")"; }

verified() { [ -f "$lib" ] && [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$(mark)" ]; }

# matches tells whether the file $1 has the pinned checksum.
matches() { [ "$(sha256sum <"$1" | cut -d' ' -f1)" = "$sum" ]; }

# write_stamp replaces the stamp in one step.
write_stamp() {
	mark >"$stamp.$$"
	mv -f "$stamp.$$" "$stamp"
}

# download leaves the verified library as $lib.
download() {
	command -v npm >/dev/null 2>&1 ||
		die 1 "npm is needed to get the package $npm_package; install Node.js with npm and run this again"
	tmp=$(mktemp -d "$dir/.fetch.XXXXXX")
	trap 'rm -rf "$tmp"' EXIT
	trap 'exit 1' HUP INT TERM
	cp "$root/internal/engine/npm/package.json" "$root/internal/engine/npm/package-lock.json" "$tmp/"
	say "getting $npm_package (about 570 MB unpacked) ..."
	(cd "$tmp" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error >&2) ||
		die 1 "npm could not install the package; see its message above"
	got=$tmp/node_modules/$npm_package/libchdb.so
	[ -f "$got" ] || die 1 "the package $npm_package has no libchdb.so"
	matches "$got" || die 1 "the checksum of libchdb.so is not $sum; it was NOT installed"
	chmod 0555 "$got"
	mv -f "$got" "$lib"
}

main() {
	platform
	case ${1:-} in
	--print)
		printf '%s\n' "$lib"
		return
		;;
	'') ;;
	*) die 2 "unknown argument $1; usage: scripts/fetch-engine.sh [--print]" ;;
	esac
	if verified; then
		say "already there: $lib"
		return
	fi
	(umask 077 && mkdir -p "$dir")
	if ! { [ -f "$lib" ] && matches "$lib"; }; then
		download
	fi
	write_stamp
	say "installed: $lib"
}

main "$@"
