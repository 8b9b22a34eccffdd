#!/usr/bin/env bash
# Builds the program as one static file that needs nothing of the machine it runs on, and prints where it is.
#
# The C library of GNU is linked in, the one that a usual build has too.
set -euo pipefail
cd "$(dirname "$0")/.."

target=$(rustc -vV | sed -n 's/^host: //p')
# With a target named, build scripts and macros are not linked so.
RUSTFLAGS="-C target-feature=+crt-static" \
    cargo build --release --locked --target "$target" -p flashyard-cli --bin flashyard >&2
echo "${CARGO_TARGET_DIR:-target}/$target/release/flashyard"
