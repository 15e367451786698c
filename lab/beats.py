"""The beats of lab-desktop, as it notes them on its board (board.h): (when it was due, when it was through, the witness)."""
import struct

STALLED_NS = 200_000_000  # a beat that late is one that a person sees


def promised(tier):
    """(how much later than idle a beat may come, in ms; for how long they may be stalled, in s): what Antifreeze promises of that tier."""
    return (1000, 2) if tier == "none" else (100, 0)


def read(path):
    """Those that are there by now; none before it is ready."""
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError:
        return []
    if len(data) < 16:
        return []
    ready, count = struct.unpack_from("QQ", data)
    return [struct.unpack_from("QQQ", data, 16 + 24 * i) for i in range(count)] if ready else []


def figures(beats, start_ns, end_ns):
    """Of the beats that fell due from start to end."""
    late = [end - due for due, end, _ in beats if start_ns - 50_000_000 <= due <= end_ns]
    return {
        "beats": len(late),
        "worst_ms": round(max(late, default=0) / 1e6, 1),
        "stalled_s": round(sum(x for x in late if x > STALLED_NS) / 1e9, 2),
        "witness_ms": round(max((w for due, _, w in beats if start_ns <= due <= end_ns), default=0) / 1e6, 1),
    }
