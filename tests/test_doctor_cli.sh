#!/bin/bash
# `antifreeze doctor` as a script and a person meet it: exit statuses, valid JSON, no colours in a pipe, no hang.
#
#   test_doctor_cli.sh ANTIFREEZE
set -euo pipefail

antifreeze=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
        echo "$*"
        exit 1
}

# status WANTED CMD...: runs it within 20 s; output in $work/out and $work/err.
status() {
        local wanted=$1 got=0
        shift
        timeout 20 "$@" >"$work/out" 2>"$work/err" </dev/null || got=$?
        [[ $got == "$wanted" ]] || fail "exit status $got instead of $wanted: $* ($(head -c 300 "$work/err"))"
}

status 0 "$antifreeze" doctor
[[ ! -s $work/err ]] || fail "something on stderr: $(cat "$work/err")"
grep -q $'\033' "$work/out" && fail "colours in a pipe"
grep -q '^protection possible here: ' <(tail -n 1 "$work/out") || fail "no summary in the last line"
for heading in Machine Sight Protection Memory Limits Disk GPU 'Built with'; do
        grep -qx "$heading" "$work/out" || fail "the heading $heading is missing"
done

status 2 "$antifreeze" doctor --no-such-option
[[ ! -s $work/out ]] || fail "a usage error on stdout"
status 2 "$antifreeze" doctor operand
status 0 "$antifreeze" doctor --help

status 0 "$antifreeze" doctor --json
/usr/bin/env python3 - "$work/out" <<'PY' || fail "the JSON is not as promised"
import json, sys
d = json.load(open(sys.argv[1]))
assert d["schema"] == 1
assert list(d) == ["schema", "checks", "features", "tier_possible", "tier_proved", "trials", "probe"], list(d)
assert d["tier_possible"] in ("scope", "cgroup2", "cgroup1", "none", "unknown")
assert len(d["checks"]) > 20
assert len({c["id"] for c in d["checks"]}) == len(d["checks"])
for c in d["checks"]:
    assert list(c) == ["id", "title", "level", "text", "fix"], c
    assert c["level"] in ("ok", "warn", "missing", "unknown"), c
    assert c["text"] and c["fix"] != "", c
    if c["level"] in ("warn", "missing"):
        assert c["fix"], c
    if c["level"] == "ok":
        assert c["fix"] is None, c
for f in d["features"]:
    assert list(f) == ["name", "version", "use"], f
# From the best downwards, and the last one held: where nothing else is to be had, none is.
trials = d["trials"]
assert [t["tier"] for t in trials] == ["scope", "cgroup2", "cgroup1", "none"][:len(trials)], trials
for t in trials:
    assert list(t) == ["tier", "proved", "offered", "limited", "braked", "killed", "clean", "took_ns", "why"], t
    assert t["proved"] == (t is trials[-1]), t
    assert t["proved"] == (t["why"] is None) == (t["offered"] and t["limited"] and t["braked"] and t["killed"] and t["clean"]), t
    assert t["took_ns"] < 10e9, t
assert d["tier_proved"] is True and d["tier_possible"] == trials[-1]["tier"], d["tier_possible"]
tier = next(c for c in d["checks"] if c["id"] == "tier")
assert f'{trials[-1]["tier"]} proved' in tier["text"], tier
PY
left=$(find /sys/fs/cgroup -type d -name 'antifreeze-trial-*' 2>/dev/null || true)
[[ -z $left ]] || fail "a trial left $left"

# The probe: tried on programs of our own, and told whatever becomes of it.
/usr/bin/env python3 - "$work/out" <<'PY' || fail "the probe is not told: $(cat "$work/out")"
import json, sys
d = json.load(open(sys.argv[1]))
check = {c["id"]: c for c in d["checks"]}
probe = d["probe"]
assert list(probe) == ["library", "tried", "seen", "why", "pythons"], probe
assert probe["tried"] is True
assert (check["probe"]["level"] == "ok") == probe["seen"], check["probe"]
assert check["native-lines"]["level"] in ("ok", "missing") and check["memory-reading"]["level"] in ("ok", "warn")
for python in probe["pythons"]:
    assert list(python) == ["path", "version", "probed", "stack", "why"], python
    assert python["path"] in check["python"]["text"] or len(probe["pythons"]) > 1, check["python"]
PY
mkdir -p "$work/p/bin" "$work/p/lib/antifreeze"
cp "$antifreeze" "$work/p/bin/antifreeze"
echo "no library" >"$work/p/lib/antifreeze/libantifreeze-probe.so"
mkdir "$work/p/run"
status 0 env XDG_RUNTIME_DIR="$work/p/run" "$work/p/bin/antifreeze" doctor --json
/usr/bin/env python3 - "$work/out" <<'PY' || fail "a broken library is not told: $(cat "$work/out")"
import json, sys
d = json.load(open(sys.argv[1]))
probe = next(c for c in d["checks"] if c["id"] == "probe")
assert probe["level"] == "warn" and "ran without it" in probe["text"] and "preload" in probe["text"], probe
assert d["probe"]["seen"] is False and "LD_PRELOAD=" in probe["fix"], probe
PY
[[ -z $(ls "$work/p/run") ]] || fail "a trial left $(ls "$work/p/run")"

status 0 "$antifreeze" doctor --no-trials --json
grep -q '"tier_proved":false,"trials":\[\]' "$work/out" || fail "--no-trials: $(tail -c 200 "$work/out")"
status 0 "$antifreeze" doctor --no-trials
grep -q 'a forecast, not proved' <(tail -n 1 "$work/out") || fail "a forecast is not called one"

# A bus that takes connections and never answers is a finding after two seconds, not a hang. Root would ask the
# system's bus, so it steps down for this one.
mkdir -p "$work/run/systemd"
/usr/bin/env python3 - "$work/run" <<'PY' &
import os, socket, sys, time
held = []
for name in ("bus", "systemd/private"):
    s = socket.socket(socket.AF_UNIX)
    s.bind(os.path.join(sys.argv[1], name))
    os.chmod(os.path.join(sys.argv[1], name), 0o777)
    s.listen(5)
    held.append(s)
open(os.path.join(sys.argv[1], "ready"), "w").close()
time.sleep(60)
PY
mute=$!
trap 'kill "$mute" 2>/dev/null; rm -rf "$work"' EXIT
for ((i = 0; i < 200; i++)); do
        [[ -e $work/run/ready ]] && break
        read -rt 0.05 _ <> <(:) || true
done
[[ -e $work/run/ready ]] || fail "the mute bus did not start"
as_user=()
if ((EUID == 0)); then
        cp "$antifreeze" "$work/antifreeze"
        antifreeze=$work/antifreeze
        chmod -R a+rX "$work"
        as_user=(setpriv --reuid 65534 --regid 65534 --clear-groups)
fi
status 0 env XDG_RUNTIME_DIR="$work/run" DBUS_SESSION_BUS_ADDRESS="unix:path=$work/run/bus" HOME=relative \
        TMPDIR=/no/such/folder "${as_user[@]}" "$antifreeze" doctor --json
/usr/bin/env python3 - "$work/out" <<'PY' || fail "a mute manager is not told: $(cat "$work/out")"
import json, sys
d = json.load(open(sys.argv[1]))
check = {c["id"]: c for c in d["checks"]}
if any(f["name"] == "libsystemd" and f["version"] for f in d["features"]):
    assert check["systemd"]["level"] == "warn" and "no answer" in check["systemd"]["text"], check["systemd"]
    assert d["tier_possible"] != "scope"
assert check["disk-home"]["level"] == "unknown", check["disk-home"]
PY

# With nothing in the environment, and nowhere to write to.
status 0 env -i "$antifreeze" doctor
if [[ -w /dev/full ]]; then
        got=0
        timeout 20 "$antifreeze" doctor >/dev/full 2>/dev/null || got=$?
        [[ $got == 2 ]] || fail "a full disk gave $got"
fi

# On a terminal there are colours, unless they are not wanted.
if command -v script >/dev/null; then
        TERM=xterm script -qec "$antifreeze doctor" /dev/null </dev/null >"$work/tty"
        grep -q $'\033\[' "$work/tty" || fail "no colours on a terminal"
        TERM=xterm NO_COLOR=1 script -qec "$antifreeze doctor" /dev/null </dev/null >"$work/tty"
        grep -q $'\033\[' "$work/tty" && fail "colours in spite of NO_COLOR"
fi
exit 0
