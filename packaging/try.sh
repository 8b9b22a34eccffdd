#!/usr/bin/env bash
# Tries the newest package of DIR where there is nothing else but devices, neither a C library nor a shell, and then follows
# tutorials with its program where there is no compiler: try.sh DIR TUTORIAL...
set -euo pipefail
tree=$(cd "$(dirname "$0")/.." && pwd)
golden=$tree/scenarios/leapio/golden.txt
cd "$1"
shift
package=$(ls -t flashyard-*.tar.gz | head -1)
sha256sum --check --quiet "$package.sha256"

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
begun=$(date +%s)
tar -xzf "$package" -C "$root" --strip-components=1
# A release is one static file. The program of the tests gets the libraries that it names, and one number will do: `make test` has
# compared all of them.
beside=nothing number=
# All of the list is read before anything is looked for in it: `grep -q` ends ldd at its first match, which pipefail calls a failure.
listed=$(ldd "$root/flashyard" 2>&1 || true)
if [[ $listed == *"=>"* ]]; then
    [ -n "${FLASHYARD_DYNAMIC:-}" ] || { printf 'the program needs libraries of this machine:\n%s\n' "$listed" >&2; exit 1; }
    libraries=$(grep -o '/[^ ]*' <<<"$listed")
    xargs cp --dereference --parents --target-directory "$root" <<<"$libraries"
    beside="nothing but $(wc -l <<<"$libraries") shared libraries of this machine" number=bare-loss-least
fi

# A directory as the root of all files holds the package, and the devices of the kernel: the program takes random numbers
# from /dev/urandom. A user may have that without being root.
mkdir "$root/dev"
alone() {
    unshare --map-root-user --mount sh -c 'mount --rbind /dev "$0/dev" && exec chroot "$0" "$@"' "$root" "$@"
}

# The three commands of docs/install.md: unpack, init, run.
alone /flashyard init /mine >/dev/null
alone /flashyard run /mine/scenario.toml --out /page >/dev/null
echo "a first result after $(($(date +%s) - begun)) s"

# The program carries its page, its scenarios and its studies. Status 1 says that a number does not agree with its source.
test -s "$root/page/report.html"
alone /flashyard --version
alone /flashyard schema >/dev/null
alone /flashyard reproduce leapio $number >"$root/reproduced" || test $? = 1
expected=$(grep "^$number.* predicted " "$golden" | grep -v ', reading of ' |
    awk '{ all++ } / agrees/ { agree++ } END { print agree " of " all " predicted numbers agree" }')
grep -q "^$expected" "$root/reproduced" || { echo "not as in $golden: $expected" >&2; tail -1 "$root/reproduced" >&2; exit 1; }
alone /flashyard serve live --load 8 --pace off --nbd unix:/nbd --seconds 2 >/dev/null
# A port of TLS opens: its library is within the program.
alone /flashyard tls-key | sed 's/^/nqn.2026-01.example:host /' >"$root/hosts"
chmod 600 "$root/hosts"
alone /flashyard serve live --pace off --listen-tls 127.0.0.1:0 --hosts /hosts --seconds 1 >"$root/served"
grep -q "over TLS 1.3" "$root/served"
test -s "$root/man/flashyard.1"
for shell in bash zsh fish; do grep -q flashyard "$root/completions/flashyard.$shell"; done
echo "the package runs where $beside is beside it"

# Everything else is that of this machine again, but for compilers: a page that does not ask for one has none.
cd "$tree"
cargo xtask pages-run --program "$root/flashyard" "$@"
echo "its program does what $# tutorials say, without a compiler"
