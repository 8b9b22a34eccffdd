#!/usr/bin/env bash
# Packs a program that is there already, with completions and manual pages: pack.sh DIR PROGRAM makes
# DIR/flashyard-VERSION-TARGET.tar.gz and its checksum.
set -euo pipefail
program=$(realpath "$2")
mkdir -p "$1"
out=$(realpath "$1")
cd "$(dirname "$0")/.."

target=$(rustc -vV | sed -n 's/^host: //p')
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
name=flashyard-$version-$target

rm -rf "${out:?}/$name"
mkdir -p "$out/$name/completions" "$out/$name/man"
cp "$program" "$out/$name/flashyard"
cp README.md CHANGELOG.md LICENSE "$out/$name/"
for shell in bash zsh fish; do
    "$program" completions "$shell" >"$out/$name/completions/flashyard.$shell"
done
"$program" man "$out/$name/man"

cd "$out"
tar --sort=name --owner=0 --group=0 --numeric-owner --mtime=@0 -c "$name" | gzip -n >"$name.tar.gz"
sha256sum "$name.tar.gz" >"$name.tar.gz.sha256"
rm -r "$name"
ls -l "$name.tar.gz"
