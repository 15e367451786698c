#!/usr/bin/env python3
"""Batches that do not fit, in real frameworks: the run goes on in parts, and nothing else about it changes.

usage: test_agent_split.py KEEPER PROBE AGENT_FOLDER FRAMEWORK

FRAMEWORK: a key of PROGRAMS (split_programs.py). Each program runs out of memory when more than LIMIT samples go through at once. Played
are: alone without a limit, with the agent without a limit (the same to the last bit), and with the agent and a limit (the same but for
rounding).
Lines that it prints: `loss X` is compared as a number, `work N ...` (samples of each pass, failed ones negative) is counted, the rest
must be equal. In the environment, ONLY=word plays those with that word in their names, and CASE=Split.test_goes_on that case alone.
"""
import os
import re
import socket
import sys
import tempfile
import threading
import unittest

from agent_harness import Harness
from frameworks import in_turn, skip_without
from split_programs import AT_ONCE, LIGHT, OWN, PROGRAMS, REFUSED, TOO_LARGE
from test_frameworks import QUIET, spoken

NEEDS = {"torch": ["torch"], "transformers": ["torch", "transformers", "accelerate"], "lightning": ["torch", "lightning"]}
BATCH = 24
PROOFS = 1.25  # batches, at most, that are done again: pieces of a half that then does not fit, a quarter weighed in another way, a proof
ROUNDING = 2e-5  # of a loss: what adding up in another order may come to over some dozens of steps
HARNESS = PYTHON = PACKAGE = FRAMEWORK = None


class Guard:
    """The other end of the control socket: hears what is told."""

    def __init__(self, says=()):
        self.folder = tempfile.TemporaryDirectory()
        self.path = self.folder.name + "/guard"
        self.lines, self.says = [], says
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.bind(self.path)
        self.listener.listen(16)
        self.thread = threading.Thread(target=self.hear, daemon=True)
        self.thread.start()

    def hear(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            with client:
                while True:
                    try:
                        line = client.recv(2048).decode()
                    except ConnectionResetError:  # said once, of one that left without reading our words: ahead of its last
                        continue
                    except OSError:
                        break
                    if not line:
                        break
                    self.lines.append(line)
                    if line.startswith("hello"):
                        self.answer(client)

    def answer(self, client):
        try:
            for said in ("welcome 1 run", *self.says):
                client.send(said.encode())
        except OSError:  # it has ended already
            pass

    def end(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join(10)
        self.folder.cleanup()
        return self.lines


def play(text, limit, agent=True, says=(), **env):
    guard = Guard(says)
    try:
        text = text.replace("import antifreeze\n", f"import sys; sys.path.append({PACKAGE!r}); import antifreeze\n")
        ended = HARNESS.play(PYTHON, text, agent=agent, env={
            **QUIET, "LIMIT": str(limit), "ANTIFREEZE_POLICY": "adapt", "ANTIFREEZE_SOCKET": guard.path, **env})
    finally:
        ended_lines = guard.end()
    ended.events = [line for line in ended_lines if line.startswith("event")]
    return ended


def played(table):
    """Rows of one of the tables, by name."""
    rows = table.get(FRAMEWORK, {})
    return [(name, rows[name]) for name in in_turn(name for name in rows if os.environ.get("ONLY", "") in name)]


def work(ended):
    found = re.search(r"^work(.*)$", ended.said, re.M)
    return [int(n) for n in found[1].split()] if found else []


class Split(unittest.TestCase):
    maxDiff = None

    def same(self, limited, alone):
        """But for rounding, and for how often the model was called."""
        for one, other in zip(spoken(limited), spoken(alone)):
            if one.startswith("loss "):
                self.assertAlmostEqual(float(one[5:]) / float(other[5:]), 1, delta=ROUNDING, msg=f"{one} and {other}")
            elif not one.startswith("work"):
                self.assertEqual(one, other)
        self.assertEqual(len(spoken(limited)), len(spoken(alone)), limited.said)

    def hold(self, text, env):
        alone = play(text, 1000, agent=False, **env)
        self.assertEqual(alone.status, 0, alone.said)
        self.assertIn("loss ", alone.said)
        roomy = play(text, 1000, **env)
        self.assertEqual(spoken(roomy), spoken(alone), "bit by bit, when nothing is split")
        self.assertEqual(roomy.events, [])
        limited = play(text, 10, **env)
        self.assertEqual(limited.status, 0, limited.said)
        self.same(limited, alone)
        self.assertEqual(limited.steps, alone.steps or roomy.steps)
        self.once(limited, alone)

    def once(self, limited, alone):
        """One step is repeated, and not more than once; the others cost no more than they must."""
        failed = [-n for n in work(limited) if n < 0]
        self.assertEqual(failed, [24, 12], "found in two halvings, and remembered")
        kinds = [line.split()[1].rstrip(":") for line in limited.events]
        self.assertEqual(kinds.count("split"), 2, limited.events)
        self.assertNotIn("refuse", kinds)
        self.assertIn("note", kinds)
        done = sum(n for n in work(limited) if n > 0)
        twice = 2 if FRAMEWORK == "torch" else 1  # a plain loop's parts are computed again on the way back
        self.assertLessEqual(done, (sum(work(alone)) + BATCH * PROOFS) * twice)

    def test_goes_on(self):
        for name, (text, env) in played(PROGRAMS):
            with self.subTest(name):
                self.hold(text, env)

    def test_refuses(self):
        """The program ends of its own error, as it would without us, and the guard is told why; if asked for, it goes on."""
        for name, (text, reason) in played(REFUSED):
            with self.subTest(name):
                ended = play(text, 10)
                self.assertNotEqual(ended.status, 0)
                self.assertIn("can't allocate memory", ended.said)
                refusals = [line for line in ended.events if line.startswith("event refuse")]
                self.assertEqual(len(refusals), 1, ended.events)
                self.assertIn(reason, refusals[0])
                if name in ("BatchNorm", "dropout", "draws of its own", "spectral norm"):
                    asked = play(text, 10, ANTIFREEZE_INEXACT="1")
                    self.assertEqual(asked.status, 0, asked.said)
                    self.assertTrue(any("not exact" in line for line in asked.events), asked.events)

    def test_from_the_start(self):
        """As an earlier attempt has learned, or because the guard asks for less."""
        text = next(iter(PROGRAMS[FRAMEWORK].values()))[0]
        alone = play(text, 1000, agent=False)
        for env in ({"ANTIFREEZE_LEAN": "1"}, {"says": ["shrink"], "SLEEP": ".06"}):
            with self.subTest(str(env)):
                lean = play(text, 1000, **env)
                self.assertEqual(lean.status, 0, lean.said)
                self.same(lean, alone)
                self.assertIn(12, work(lean))

    def test_on_its_own(self):
        for name, text in played(OWN):
            with self.subTest(name):
                ended = play(text.replace("PACKAGE", repr(PACKAGE)), 1000 if FRAMEWORK == "lightning" else 10)
                self.assertEqual(ended.status, 0, ended.said)
                self.assertIn("yes", ended.said)

    def test_one_sample_does_not_fit(self):
        """Blocks are computed again on the way back, and it goes on with the same losses; without us it dies."""
        for name, (text, mib) in played(LIGHT):
            with self.subTest(name):
                alone, dead = (play(text, limit, agent=False, **AT_ONCE) for limit in (1000, mib))
                light = play(text, mib, **AT_ONCE)
                self.assertEqual(alone.status, 0, alone.said)
                self.assertNotEqual(dead.status, 0, dead.said)
                self.assertEqual(light.status, 0, f"{light.said} {light.events}")
                self.same(light, alone)
                self.assertTrue(any("one sample alone" in line and "computed again" in line for line in light.events), light.events)

    def test_a_model_that_is_too_large(self):
        """Nothing can be lightened: the error is the program's own, and that one sample did not fit is told."""
        if FRAMEWORK not in TOO_LARGE:
            return
        ended = play(*TOO_LARGE[FRAMEWORK], **AT_ONCE)
        self.assertNotEqual(ended.status, 0)
        self.assertIn("can't allocate memory", ended.said)
        self.assertTrue(any(line.startswith("event oom") and " micro=1 " in line for line in ended.events), ended.events)
        refusals = [line for line in ended.events if line.startswith("event refuse")]
        self.assertEqual(len(refusals), 1, ended.events)
        self.assertIn("one sample alone does not fit", refusals[0])

    def test_other_errors_are_the_programs(self):
        text = next(iter(PROGRAMS[FRAMEWORK].values()))[0].replace("raise RuntimeError(\"[enforce fail", "raise ValueError(\"[mine")
        ended = play(text, 10)
        self.assertNotEqual(ended.status, 0)
        self.assertIn("ValueError: [mine", ended.said)
        self.assertEqual([line.split()[1] for line in ended.events], ["error"])

    def test_not_unless_asked(self):
        """Other policies change nothing."""
        text = next(iter(PROGRAMS[FRAMEWORK].values()))[0]
        ended = play(text, 10, ANTIFREEZE_POLICY="protect")
        self.assertNotEqual(ended.status, 0)
        self.assertEqual(work(ended), [])
        self.assertFalse([line for line in ended.events if "split" in line])


if __name__ == "__main__":
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    FRAMEWORK = sys.argv.pop()
    PYTHON = skip_without(*NEEDS[FRAMEWORK])
    HARNESS = Harness(*sys.argv[1:4])
    PACKAGE = HARNESS.agent.rsplit("/", 2)[0]
    unittest.main(argv=sys.argv[:1] + os.environ.get("CASE", "").split(), verbosity=2)
