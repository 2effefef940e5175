#!/bin/sh
# install.sh PREFIX [BUILT]: installs fut.h, libfut.so, libfut.a and fut.pc under PREFIX (/usr/local, say).
# BUILT is the folder with the libraries; without it they are built here, for release. With DESTDIR in the environment, the
# files go to DESTDIR/PREFIX, from where a package is made.
set -eu

if [ $# -lt 1 ] || [ $# -gt 2 ]; then
    echo "usage: $0 PREFIX [BUILT]" >&2
    exit 2
fi
here=$(cd "$(dirname "$0")" && pwd)
if [ -n "${DESTDIR:-}" ]; then
    prefix=$1
else
    mkdir -p "$1"
    prefix=$(cd "$1" && pwd)
fi
root=${DESTDIR:-}$prefix
built=${2:-}
if [ -z "$built" ]; then
    cd "$here"
    cargo build --release --locked -p fut-c
    built=$(cargo metadata --format-version 1 --no-deps | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')/release
fi
version=$(sed -n '/^\[workspace.package\]/,/^$/s/^version = "\(.*\)"/\1/p' "$here/../../Cargo.toml")

mkdir -p "$root/include" "$root/lib/pkgconfig"
install -m 644 "$here/include/fut.h" "$root/include/fut.h"
install -m 755 "$built/libfut.so" "$root/lib/libfut.so"
install -m 644 "$built/libfut.a" "$root/lib/libfut.a"
# Further libraries that the static library needs: `rustc --print native-static-libs`.
cat >"$root/lib/pkgconfig/fut.pc" <<END
prefix=$prefix
includedir=\${prefix}/include
libdir=\${prefix}/lib

Name: fut
Description: Probes that cost what reading the clock costs
URL: https://github.com/sigmund-trace/sigmund
Version: $version
Cflags: -I\${includedir}
Libs: -L\${libdir} -lfut
Libs.private: -lgcc_s -lutil -lrt -lpthread -lm -ldl -lc
END
echo "installed in $root: include/fut.h, lib/libfut.so, lib/libfut.a, lib/pkgconfig/fut.pc"
