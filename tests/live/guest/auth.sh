# In-band authentication: refused without the key and with a wrong one, accepted with it; also of the controller.
. "$(dirname "$0")/common.sh" "$@"
shift 3
key=$1 controller_key=${2:-} hostnqn=${3:-nqn.2014-08.org.nvmexpress:uuid:11111111-2222-3333-4444-555555555555}
connect --hostnqn="$hostnqn" >/dev/null 2>&1 && fail "connected without a key"
wrong=$(nvme gen-dhchap-key --hmac=1 --nqn="$hostnqn" 2>/dev/null)
connect --hostnqn="$hostnqn" --dhchap-secret="$wrong" >/dev/null 2>&1 && fail "connected with a wrong key"
device=$(connect --hostnqn="$hostnqn" --dhchap-secret="$key") || fail "not connected with the key"
dd if="$device" of=/dev/null bs=4k count=16 iflag=direct 2>/dev/null || fail "read after authentication"
disconnect
if [ -n "$controller_key" ]; then
    device=$(connect --hostnqn="$hostnqn" --dhchap-secret="$key" --dhchap-ctrl-secret="$controller_key") || fail "both ways"
    disconnect
    connect --hostnqn="$hostnqn" --dhchap-secret="$key" --dhchap-ctrl-secret="$wrong" >/dev/null 2>&1 && fail "a wrong controller was trusted"
fi
say "only those with the key get in"
