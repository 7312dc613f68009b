#!/usr/bin/env bash
# Builds the C library, and installs it with its header, its pkg-config file and its manual.
#
#   PREFIX    where to install (/usr/local)
#   LIBDIR    the folder of libraries ($PREFIX/lib; Debian's is /usr/lib/x86_64-linux-gnu)
#   DESTDIR   written before each path, as for packages (nothing)
#
# Not cargo-c: it would be built for minutes to do what these lines do.
set -euo pipefail
cd "$(dirname "$0")/.."
prefix=${PREFIX:-/usr/local}
libdir=${LIBDIR:-$prefix/lib}
to=${DESTDIR:-}
built=${CARGO_TARGET_DIR:-target}/release
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -n 1)

scripts/progress.py cargo rustc --release --locked --package comity-c --lib --crate-type cdylib,staticlib

install -d "$to$libdir/pkgconfig" "$to$prefix/include" "$to$prefix/share/man/man3"
install -m 755 "$built/libcomity_c.so" "$to$libdir/libcomity.so.$version"
install -m 644 "$built/libcomity_c.a" "$to$libdir/libcomity.a"
ln -sf "libcomity.so.$version" "$to$libdir/libcomity.so.0"
ln -sf libcomity.so.0 "$to$libdir/libcomity.so"
install -m 644 product/c/include/comity.h "$to$prefix/include"
install -m 644 product/c/man/*.3 "$to$prefix/share/man/man3"
ln -sf comity_sendmsg.3 "$to$prefix/share/man/man3/comity_recvmsg.3"
cat >"$to$libdir/pkgconfig/comity.pc" <<END
prefix=$prefix
libdir=$libdir
includedir=$prefix/include

Name: comity
Description: media with deadlines over UDP
Version: $version
Libs: -L\${libdir} -lcomity
Libs.private: -lgcc_s -lpthread -lm -ldl
Cflags: -I\${includedir}
END
echo "installed libcomity $version in $to$libdir"
