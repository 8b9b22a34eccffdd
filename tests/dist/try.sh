#!/usr/bin/env bash
# Tries the newest package of DIR where there is nothing else, neither a C library nor a shell: try.sh DIR
set -euo pipefail
cd "$1"
package=$(ls -t flashyard-*.tar.gz | head -1)
sha256sum --check "$package.sha256"

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
tar -xzf "$package" -C "$root" --strip-components=1
if ldd "$root/flashyard" 2>&1 | grep -q "=>"; then
    echo "the program needs libraries of this machine" >&2
    ldd "$root/flashyard" >&2
    exit 1
fi

# A directory as the root of all files holds nothing but the package. A user may have that without being root.
alone() { unshare --map-root-user --root="$root" --wd=/ "$@"; }
alone /flashyard --version
alone /flashyard demo --out /page
alone /flashyard init /mine
alone /flashyard run /mine/scenario.toml --json >/dev/null
test -s "$root/page/report.html"
echo "the package runs where nothing else is"
