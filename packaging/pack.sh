#!/usr/bin/env bash
# Packs the program as one static file that needs nothing of the machine it runs on, with completions and manual pages:
# pack.sh DIR makes DIR/flashyard-VERSION-TARGET.tar.gz and its checksum.
#
# The C library of GNU is linked in, the one that a usual build has too.
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p "$1"
out=$(cd "$1" && pwd)

target=$(rustc -vV | sed -n 's/^host: //p')
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
name=flashyard-$version-$target

# With a target named, build scripts and macros are not linked so.
RUSTFLAGS="-C target-feature=+crt-static" \
    cargo build --release --locked --target "$target" -p flashyard-cli --bin flashyard
binary=${CARGO_TARGET_DIR:-target}/$target/release/flashyard

rm -rf "${out:?}/$name"
mkdir -p "$out/$name/completions" "$out/$name/man"
cp "$binary" README.md CHANGELOG.md LICENSE "$out/$name/"
for shell in bash zsh fish; do
    "$binary" completions "$shell" >"$out/$name/completions/flashyard.$shell"
done
"$binary" man "$out/$name/man"

cd "$out"
tar --sort=name --owner=0 --group=0 --numeric-owner --mtime=@0 -c "$name" | gzip -n >"$name.tar.gz"
sha256sum "$name.tar.gz" >"$name.tar.gz.sha256"
rm -r "$name"
ls -l "$name.tar.gz"
