#!/usr/bin/env python3
"""`antifreeze convert`: what comes out has the samples that went in, whoever kills it in between.

usage: test_convert.py ANTIFREEZE CONVERTER PYTHON_FOLDER LIBRARY [TEST...]

CONVERTER: antifreeze-convert, where ANTIFREEZE finds it; LIBRARY: libantifreeze-loader.so. Needs no NumPy. zarr-python reads the copies, too, where this interpreter or the one in
AFZ_ZARR_PYTHON has it. KILLS: how often it is killed.
"""
import ctypes
import fcntl
import io
import json
import os
import pty
import random
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tarfile
import tempfile
import time
import unittest
import zipfile
import zlib

from scenario import tree

KILLS = int(os.environ.get("KILLS", 20))
DEADLINE = 120  # seconds that anything may take
STATE = ".antifreeze-convert"
MB = 1 << 20
LOW = bytes(i & 15 for i in range(256))


# ---- files ----

def noise(count, seed=1):
    """Bytes that pack to about a half."""
    return random.Random(seed).getrandbits(8 * count).to_bytes(count, "little").translate(LOW)


def put(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data)
    return path


def npy(descr, shape, data):
    head = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}"
    head += " " * (-(len(head) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + data


def png(width, height, seed):
    def part(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    pixels = noise(width * height * 3, seed)
    rows = b"".join(b"\0" + pixels[3 * width * y:3 * width * (y + 1)] for y in range(height))
    return (b"\x89PNG\r\n\x1a\n" + part(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) +
            part(b"IDAT", zlib.compress(rows)) + part(b"IEND", b""))


# ---- what lies on the disk ----

def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return crc ^ 0xffffffff


def samples(path, labels=None, **more):
    """Fields and all their bytes, as the loader reads them in order."""
    options = native.Options()
    names = [os.fsencode(name) for name in (path, labels) if name]
    options.paths, options.path_count = (ctypes.c_char_p * len(names))(*names), len(names)
    options.budget_bytes, options.batch, options.shuffle = 64 * MB, 7, 1
    for name, value in more.items():
        setattr(options, name, value.encode() if isinstance(value, str) else value)
    library, loader, why = native.library(), ctypes.c_void_p(), ctypes.create_string_buffer(native.WHY_MAX)
    native.check(library.afz_loader_open(ctypes.byref(options), ctypes.byref(loader), why), why)
    facts, batch = native.Facts(), native.Batch()
    library.afz_loader_facts(loader, ctypes.byref(facts))
    fields = [facts.field[i] for i in range(facts.fields)]
    data = [b""] * len(fields)
    try:
        while native.check(library.afz_loader_next(loader, ctypes.byref(batch), why), why):
            for i, field in enumerate(fields):
                data[i] += ctypes.string_at(batch.data[i], batch.count * field.bytes)
            library.afz_loader_release(loader, batch.lease)
    finally:
        library.afz_loader_close(loader)
    return [(field.dtype, list(field.shape[:field.dimensions]), bytes_) for field, bytes_ in zip(fields, data)]


def peak_kib(pid):
    """Of memory since its program began; 0 when it is gone."""
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8") as file:
            return max([int(line.split()[1]) for line in file if line.startswith("VmHWM:")], default=0)
    except OSError:
        return 0


def zarr_python():
    for python in os.environ.get("AFZ_ZARR_PYTHON"), sys.executable:
        if python and subprocess.run([python, "-c", "import zarr; assert zarr.__version__ >= '3'"], capture_output=True).returncode == 0:
            return python
    return None


class Convert(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="afz-convert-")
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)

    def path(self, name):
        return os.path.join(self.dir, name)

    def run_it(self, *arguments, **more):
        return subprocess.run([ANTIFREEZE, "convert", *arguments], capture_output=True, text=True, timeout=DEADLINE, **more)

    def good(self, *arguments, **more):
        result = self.run_it(*arguments, **more)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return result.stdout

    def bad(self, status, words, *arguments, **more):
        """One line that has the words, and nothing left where nothing was."""
        there = os.path.exists(arguments[-1])
        result = self.run_it(*arguments, **more)
        self.assertEqual(result.returncode, status, result.stderr)
        self.assertRegex(result.stderr, words or ".")
        self.assertRegex(result.stderr, r"\Aantifreeze: [^\n]+\n\Z")
        self.assertEqual(result.stdout, "")
        self.assertEqual(os.path.exists(arguments[-1]), there)
        return result.stderr

    def an_array(self, name="x.npy", samples_=4003, width=257, seed=1):
        return put(self.path(name), npy("|u1", (samples_, width), noise(samples_ * width, seed)))

    def labels(self, count=4003):
        return put(self.path("y.npy"), npy("<i4", (count,), b"".join(struct.pack("<i", 3 * i) for i in range(count))))

    # ---- what comes out ----

    def sources(self):
        numbers = struct.pack("<300f", *range(300))
        yield "npy", self.an_array(), ["--labels", self.labels()], {}
        yield "npy-big-endian", put(self.path("b.npy"), npy(">i2", (101, 3), noise(606))), [], {}
        yield "one sample", put(self.path("one.npy"), npy("<f8", (1, 5), noise(40))), [], {}
        yield "bool", put(self.path("bool.npy"), npy("|b1", (999,), bytes(i & 1 for i in range(999)))), [], {}
        yield "half", put(self.path("half.npy"), npy("<f2", (77, 2, 3), noise(924))), [], {}
        with zipfile.ZipFile(self.path("z.npz"), "w") as file:
            file.writestr("images.npy", npy("<f4", (100, 3), numbers * 1))
            file.writestr("kinds.npy", npy("|i1", (100,), bytes(100)))
        yield "npz", self.path("z.npz"), [], {}
        yield "idx", put(self.path("t-idx3-ubyte"), struct.pack(">IIII", 0x803, 60, 28, 28) + noise(60 * 784)), [], {}
        yield "csv", put(self.path("t.csv"), b"a,b,price\n" + b"".join(b"%d,%d.5,%d\n" % (i, i, i * i) for i in range(501))), \
            ["--details", '{"label": "price"}'], {"details": '{"label": "price"}'}
        tokens = {"format": "tokens", "details": '{"dtype": "u2", "length": 16, "overlap": 1}'}
        yield "tokens", put(self.path("tokens.bin"), noise(4002)), [f"--{k}={v}" for k, v in tokens.items()], tokens
        raw = {"format": "raw", "details": '{"dtype": "f4", "shape": [3, 5]}'}
        yield "raw", put(self.path("records.bin"), noise(60 * 201)), [f"--{k}={v}" for k, v in raw.items()], raw
        for i in range(23):
            put(self.path(f"photos/{'cat' if i % 3 else 'ant'}/{i:03}.png"), png(9, 7, i))
        yield "folder", self.path("photos"), [], {}
        with tarfile.open(self.path("t.tar"), "w") as file:
            for i in range(11):
                for name, data in ((f"{i:04}.png", png(9, 7, i)), (f"{i:04}.cls", b"%d" % (i % 4))):
                    member = tarfile.TarInfo(name)
                    member.size = len(data)
                    file.addfile(member, io.BytesIO(data))
        yield "tar", self.path("t.tar"), [], {}

    def test_what_went_in_comes_out(self):
        for number, (name, source, arguments, options) in enumerate(self.sources()):
            with self.subTest(name):
                target = self.path(f"{number}.zarr")
                self.good(source, target, *arguments, "--chunk", "4K", "--shard", "20K")
                labels = arguments[1] if arguments[:1] == ["--labels"] else None
                self.assertEqual(samples(target), samples(source, labels, **options))
                again = self.path(f"{number}-again.zarr")
                self.good(target, again, "--level", "0")
                self.assertEqual(samples(again), samples(target))
                self.assertEqual([n for n in tree(target) if ".part" in n or STATE in n], [])

    def test_arrays_by_name(self):
        source, labels, target = self.an_array(), self.labels(), self.path("t.zarr")
        self.good(source, target, "--labels", labels)
        self.assertEqual(sorted(os.listdir(target)), ["x", "y", "zarr.json"])
        self.assertEqual(samples(target + "/x", target + "/y"), samples(source, labels))
        twins = [put(self.path(f"{i}/a.npy"), npy("|u1", (10,), noise(10, i))) for i in range(2)]
        self.good(twins[0], self.path("u.zarr"), "--labels", twins[1])
        self.assertEqual(sorted(os.listdir(self.path("u.zarr"))), ["a", "a_2", "zarr.json"])

    def test_every_byte(self):
        """Without zstd, all of it can be looked at from here."""
        data, target = noise(1000 * 12), self.path("t.zarr")
        self.good(put(self.path("x.npy"), npy("<f4", (1000, 3), data)), target, "--level", "0", "--chunk", "1K", "--shard", "3K")
        with open(target + "/x/zarr.json", encoding="utf-8") as file:
            about = json.load(file)
        sharding = about["codecs"][0]["configuration"]
        chunk, shard = sharding["chunk_shape"][0], about["chunk_grid"]["configuration"]["chunk_shape"][0]
        self.assertEqual((about["shape"], chunk, shard, about["data_type"]), ([1000, 3], 85, 255, "float32"))
        self.assertEqual([codec["name"] for codec in sharding["codecs"]], ["bytes", "crc32c"])
        whole, count = b"", 0
        for number in range(-(-1000 // shard)):
            with open(f"{target}/x/c.{number}.0", "rb") as file:
                found = file.read()
            index, end = found[-(3 * 16 + 4):-4], 0
            self.assertEqual(struct.unpack("<I", found[-4:])[0], crc32c(index))
            for at, size in struct.iter_unpack("<QQ", index):
                if at == size == 2**64 - 1:
                    continue
                self.assertEqual(at, end)
                packed, end, count = found[at:at + size], at + size, count + 1
                self.assertEqual(struct.unpack("<I", packed[-4:])[0], crc32c(packed[:-4]))
                whole += packed[:-4]
            self.assertEqual(end, len(found) - 52)
        self.assertEqual((whole[:len(data)], count), (data, 12))
        self.assertEqual(set(whole[len(data):]), {0})

    def test_zarr_python(self):
        python = zarr_python()
        if not python:
            self.skipTest("zarr-python is not here")
        source, labels, target = self.an_array(), self.labels(), self.path("t.zarr")
        for level in "0", "3":
            self.good(source, target, "--labels", labels, "--chunk", "100K", "--shard", "400K", "--force", "--level", level)
            read = "import sys, zarr; g = zarr.open(sys.argv[1], mode='r'); sys.stdout.buffer.write(g['x'][:].tobytes() + g['y'][:].tobytes())"
            got = subprocess.run([python, "-W", "error", "-c", read, target], capture_output=True, check=True).stdout
            self.assertEqual(got, b"".join(data for _, _, data in samples(source, labels)))

    def test_pictures(self):
        target = self.path("t.zarr")
        for i, size in enumerate([(9, 7), (8, 8), (30, 20)]):
            put(self.path(f"photos/a/{i}.png"), png(*size, i))
        self.bad(2, "1.png cannot be read: it is 8 x 8 and the first one 9 x 7: --resize HEIGHTxWIDTH makes all one size", self.path("photos"), target)
        self.good(self.path("photos"), target, "--resize", "6x5")
        image = native.Image(height=6, width=5)
        self.assertEqual(samples(target), samples(self.path("photos"), image=image))
        self.assertEqual(samples(target)[0][:2], (0, [6, 5, 3]))
        self.bad(2, "made with other --resize", self.path("photos"), target)
        self.good(self.path("photos"), self.path("f.zarr"), "--resize", "6", "--float", "--mean", ".5,.4,.3", "--deviation", ".1,.2,.3")
        image = native.Image(height=6, width=6, is_float=1, mean=(.5, .4, .3), deviation=(.1, .2, .3))
        self.assertEqual(samples(self.path("f.zarr")), samples(self.path("photos"), image=image))

    # ---- whoever stops it ----

    def slow(self):
        """Something with some sixty shards, and how it comes out."""
        source, labels, target = self.an_array(samples_=16001), self.labels(16001), self.path("t.zarr")
        command = [source, target, "--labels", labels, "--chunk", "16K", "--shard", "64K"]
        began = time.monotonic()
        self.good(*command)
        took, whole = time.monotonic() - began, tree(target)
        shutil.rmtree(target)
        return command, target, took, whole

    def test_killed(self):
        command, target, took, whole = self.slow()
        chance, kills, went_on = random.Random(5), 0, 0
        end = time.monotonic() + DEADLINE
        while kills < KILLS and time.monotonic() < end:
            process = subprocess.Popen([ANTIFREEZE, "convert", "--json", *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            try:
                out, err = process.communicate(timeout=chance.uniform(0, took))
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()
                kills += 1
                found = tree(target)
                for name in found:  # under its own name there is never a part of a shard
                    if os.path.basename(name).startswith("c."):
                        self.assertEqual(found[name], whole[name])
                if STATE in found and "zarr.json" not in found:
                    with self.assertRaises(native.LoaderError):
                        samples(target)
                continue
            self.assertEqual((process.returncode, err), (0, b""))
            went_on += json.loads(out)["resumed_samples"] > 0
            self.assertEqual(tree(target), whole)
            shutil.rmtree(target)
        self.assertGreaterEqual(kills, min(KILLS, 3))
        self.good(*command)
        self.assertEqual(tree(target), whole)
        self.assertGreater(went_on + (kills < KILLS), 0)

    def start_and_wait(self, command, shards, **more):
        process = subprocess.Popen([ANTIFREEZE, "convert", *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)
        end = time.monotonic() + DEADLINE
        while time.monotonic() < end and process.poll() is None:
            try:
                with open(os.path.join(command[1], STATE), encoding="utf-8") as file:
                    if json.load(file)["shards"] >= shards:
                        break
            except FileNotFoundError:
                pass
        return process

    def test_interrupted(self):
        command, target, _, whole = self.slow()
        for shards, signal_ in (2, signal.SIGINT), (20, signal.SIGTERM):
            process = self.start_and_wait(command, shards)
            process.send_signal(signal_)
            _, err = process.communicate(timeout=DEADLINE)
            if process.returncode == 0:
                continue  # it was done before it could be stopped
            self.assertEqual(process.returncode, -signal_)
            self.assertRegex(err, r"\Aantifreeze: stopped; [0-9]+ % of the copy is done, and the same command goes on from there\n\Z")
            self.assertIn(STATE, os.listdir(target))
        self.good(*command)
        self.assertEqual(tree(target), whole)

    def test_one_at_a_time(self):
        command, target, _, whole = self.slow()
        os.mkdir(target)
        folder = os.open(target, os.O_RDONLY)
        fcntl.flock(folder, fcntl.LOCK_EX)
        self.bad(2, "another antifreeze convert is writing", *command[2:], *command[:2])
        os.close(folder)
        self.good(*command)
        self.assertEqual(tree(target), whole)

    def test_source_that_changes(self):
        command, target, _, _ = self.slow()
        process = self.start_and_wait(command, 2)
        os.utime(command[0])
        _, err = process.communicate(timeout=DEADLINE)
        if process.returncode:
            self.assertEqual(process.returncode, 2)
            self.assertRegex(err, "has changed while it was read: --force begins anew")
            self.assertNotIn("zarr.json", tree(target))
        self.bad(2, "from another source, or it has changed since", *command[2:], *command[:2])
        self.good(*command, "--force")

    def test_shards_that_went_away(self):
        command, target, _, whole = self.slow()
        process = self.start_and_wait(command, 8)
        process.kill()
        process.communicate()
        if os.path.exists(os.path.join(target, STATE)):
            os.remove(os.path.join(target, "x", "c.3.0"))
            self.good(*command)
        self.assertEqual(tree(target), whole)
        os.remove(os.path.join(target, "x", "c.3.0"))
        self.bad(2, "has lost a part of it; --force makes it anew", *command[2:], *command[:2])
        self.good(*command, "--force")
        self.assertEqual(tree(target), whole)

    def unfinish(self, target, shards):
        """What a kill before the descriptions leaves of a copy that is whole."""
        with open(target + "/zarr.json", encoding="utf-8") as file:
            recipe = json.load(file)["attributes"]["antifreeze_convert"]
        for folder in "", *(array["name"] for array in recipe["arrays"]):
            os.remove(os.path.join(target, folder, "zarr.json"))
        put(os.path.join(target, STATE), json.dumps({"shards": shards, "recipe": recipe}).encode())

    def test_what_is_done_stays(self):
        source, target, labels = self.an_array(), self.path("t.zarr"), self.labels()
        command = ["--labels", labels, "--chunk", "64K", "--shard", "128K", source, target]
        self.good(*command)
        whole = tree(target)
        shards = sum(name.startswith("x/c.") for name in whole)
        self.bad(125, "cannot be written", "--force", "--level", "5", *command,
                 preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)))
        self.assertEqual(tree(target), whole)
        self.unfinish(target, shards)
        self.bad(125, "cannot be written: Too many open files", *command,
                 preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (5, 5)))  # not one for each array
        for force in [], ["--force"]:  # which was stopped: it is no other copy
            self.assertGreater(json.loads(self.good("--json", *force, *command))["resumed_samples"], 0)
            self.assertEqual(tree(target), whole)
            self.unfinish(target, shards - 1)

    def test_not_interrupted(self):
        command, target, _, whole = self.slow()
        process = self.start_and_wait(command, 2, preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))  # as nohup does
        process.send_signal(signal.SIGHUP)
        self.assertEqual((process.communicate(timeout=DEADLINE)[1], process.returncode), ("", 0))
        self.assertEqual(tree(target), whole)

    # ---- no room ----

    def test_files_that_may_not_grow(self):
        command, target, _, whole = self.slow()
        command[-1] = "128K"
        self.good(*command)
        whole = tree(target)
        shutil.rmtree(target)
        limit = 60 << 10  # of a shard's 70K or so
        self.bad(125, r"files may not become so large here \(ulimit -f\); 0 % of the copy is done", *command[2:], *command[:2],
                 preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
        self.good(*command)
        self.assertEqual(tree(target), whole)

    def test_full_disk(self):
        disk = self.path("disk")
        os.mkdir(disk)
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64M,nr_inodes=40", "tmpfs", disk], capture_output=True).returncode != 0:
            self.skipTest("a disk of its own cannot be had here")
        self.addCleanup(subprocess.run, ["umount", disk], capture_output=True)
        command, target, _, whole = self.slow()
        small = [command[0], disk + "/t.zarr", *command[2:]]
        result = self.run_it(*small)
        self.assertEqual(result.returncode, 125)
        self.assertRegex(result.stderr, r"\Aantifreeze: the disk is full; [1-9][0-9]* % of the copy is done, and the same command goes on from "
                                        r"there when there is room\n\Z")
        subprocess.run(["mount", "-o", "remount,nr_inodes=4000", disk], check=True)
        self.assertIn(STATE, os.listdir(small[1]))
        self.good(*small)
        self.assertEqual(tree(small[1]), whole)
        shutil.rmtree(small[1])
        subprocess.run(["mount", "-o", "remount,size=1M", disk], check=True)
        self.bad(125, r"would take about [0-9.]+M, and [0-9.]+[KM] are free there: make room", *command[2:], command[0], small[1])
        dry = json.loads(self.good(*small, "--dry-run", "--json"))
        self.assertEqual((dry["fits"], dry["free_bytes"] <= 1 << 20), (False, True))

    # ---- what it refuses ----

    def test_other_things_in_its_place(self):
        source, target = self.an_array(), self.path("t.zarr")
        self.bad(2, "there is no folder", source, self.path("not/here.zarr"))
        self.bad(2, "is a file; the copy is a folder", source, put(self.path("file.zarr"), b"x"))
        put(self.path("mine/notes.txt"), b"mine")
        self.bad(2, "is no copy that antifreeze convert made", "--force", source, self.path("mine"))
        self.assertEqual(tree(self.path("mine")), {"notes.txt": b"mine"})
        put(self.path("photos/a/1.png"), png(4, 4, 1))
        self.bad(2, "is inside of what is to be copied", self.path("photos"), self.path("photos/t.zarr"))
        self.bad(2, "is inside of what is to be copied", self.path("photos"), self.path("photos"))
        self.assertEqual(list(tree(self.path("photos"))), ["a/1.png"])
        self.good(source, target)
        os.symlink(target, self.path("link.zarr"))
        for mixed in (target, self.path("link.zarr")), (target + "/x", target):
            self.bad(2, "is inside of what is to be copied, or has it inside", "--force", "--level", "5", *mixed)
        self.assertEqual(samples(target), samples(source))
        self.bad(2, "made with another --level; --force makes it anew", "--level", "5", source, target)
        self.bad(2, "made with another --chunk", "--chunk", "8K", source, target)
        self.bad(2, "made with other --labels", "--labels", self.labels(), source, target)
        before = tree(target)
        self.assertIn("is whole already", self.good(source, target))
        self.assertEqual(tree(target), before)
        self.an_array(seed=2)
        self.bad(2, "made from another source, or it has changed since", source, target)
        self.good(source, target, "--labels", self.labels(), "--force", "--quiet")
        self.assertEqual(samples(target), samples(source, self.labels()))

    def test_force_looks_first(self):
        """A budget that is too small is noticed before anything is cleared."""
        source, target = self.an_array(), self.path("t.zarr")
        self.good(source, target)
        before = tree(target)
        self.bad(2, "packing", "--force", "--level", "19", "--budget", "1M", source, target)
        self.assertEqual(tree(target), before)

    def test_begun_with_something_else(self):
        command, target, _, _ = self.slow()
        process = self.start_and_wait(command, 2)
        process.kill()
        process.communicate()
        if not os.path.exists(os.path.join(target, STATE)):
            self.skipTest("it was done before it could be killed")
        self.bad(2, "was begun with another --level: the command that began it goes on with it, --force begins anew", *command[2:],
                 "--level", "1", *command[:2])
        put(os.path.join(target, STATE), b"{}")
        self.bad(2, "was begun .*--force", *command[2:], *command[:2])
        self.good(command[0], target, "--force")
        self.assertEqual(sorted(os.listdir(target)), ["x", "zarr.json"] if not os.path.exists(target + "/y") else ["x", "y", "zarr.json"])
        self.assertEqual(samples(target), samples(command[0]))

    def test_hostile_sources(self):
        huge = npy("<f4", (1 << 62, 1 << 62), b"")
        fifo = self.path("fifo.npy")
        os.mkfifo(fifo)
        os.mkdir(self.path("empty"))
        damaged = bytearray(png(9, 7, 2))
        damaged[60] ^= 255
        put(self.path("photos/a/1.png"), png(9, 7, 1))
        put(self.path("photos/a/2.png"), bytes(damaged))
        made = self.path("made.zarr")
        self.good(self.an_array(), made)
        cut = tree(made)["x/c.0.0"]
        put(made + "/x/c.0.0", cut[:20000] + b"\x01" + cut[20001:])
        put(self.path("a/zarr.json"), b'{"zarr_format": 3, "node_type": "group", "attributes": {"antifreeze_convert": '
                                      b'{"arrays": [{"name": "../made.zarr/x"}]}}}')
        for words, source in (
                ("No such file", self.path("nothing.npy")),
                ("of no format that is known.* --format raw", put(self.path("noise.bin"), noise(5000))),
                ("", put(self.path("cut.npy"), npy("<f4", (1000, 3), bytes(11999)))),
                ("", put(self.path("huge.npy"), huge)),
                ("", put(self.path("head.npy"), b"\x93NUMPY\x01\x00\xff\xff{'descr'")),
                ("", fifo),
                ("", self.path("empty")),
                ("2.png", self.path("photos")),
                ("its checksum is wrong", made),
                ("without arrays", self.path("a")),
                (r"two\?lines", put(self.path("two\nlines.bin"), noise(100))),
                ("", "/dev/zero"), ("", "/proc/self/mem"), ("", "")):
            with self.subTest(source):
                self.bad(2, words, source, self.path("t.zarr"))
        self.bad(2, "4003 samples.* has 17", "--labels", put(self.path("y.npy"), npy("|u1", (17,), bytes(17))), self.path("x.npy"),
                 self.path("t.zarr"))
        self.bad(2, "has to be said: --details {", "--format", "raw", self.path("x.npy"), self.path("t.zarr"))
        self.bad(2, "no format is called", "--format", "hdf5", self.path("x.npy"), self.path("t.zarr"))

    def test_usage(self):
        source, target = self.an_array(), self.path("t.zarr")
        for words, arguments in (("DEST is missing", [source]),
                                 ("--resize is a height and a width", ["--resize", "0x4", source, target]),
                                 ("--resize is a height and a width", ["--resize", "4x", source, target]),
                                 ("--resize is a height and a width", ["--resize", "99999999999999999999", source, target]),
                                 ("--shard is smaller than --chunk", ["--chunk", "2M", "--shard", "1M", source, target]),
                                 ("three numbers", ["--float", "--mean", "1,2", source, target]),
                                 ("go with --float", ["--mean", "1,2,3", source, target]),
                                 ("level", ["--level", "20", source, target]),
                                 ("needs at least|packing", ["--budget", "1M", source, target])):
            with self.subTest(arguments):
                self.bad(2, words, *arguments)
        self.assertEqual(subprocess.run([CONVERTER, "nonsense"], capture_output=True).returncode, 125)

    # ---- what it says, what it takes ----

    def test_words(self):
        source, target = self.an_array(), self.path("t.zarr")
        self.assertRegex(self.good(source, target, "--dry-run"), r"would take about [0-9.]+K on disk \(1005K plain\) in 1 shard; .* it fits")
        self.assertFalse(os.path.exists(target))
        dry = json.loads(self.good(source, target, "--dry-run", "--json"))
        made = json.loads(self.good(source, target, "--json"))
        self.assertEqual(made["arrays"], [{"name": "x", "dtype": "uint8", "shape": [4003, 257]}])
        self.assertEqual((made["schema"], made["samples"], made["plain_bytes"]), (1, 4003, 4003 * 257))
        on_disk = sum(len(data) for name, data in tree(target).items() if "c." in name)
        self.assertEqual(made["bytes"], on_disk)
        self.assertLess(abs(dry["likely_bytes"] - on_disk), on_disk / 5)
        self.assertIn(f'antifreeze.Loader("{target}"', self.good(source, target, "--force"))
        self.assertEqual(self.good(source, target, "--quiet", "--force"), "")

    def test_bar(self):
        command, _, _, _ = self.slow()
        terminal, its = pty.openpty()
        subprocess.run([ANTIFREEZE, "convert", *command], stdout=subprocess.DEVNULL, stderr=its, check=True, timeout=DEADLINE)
        os.close(its)
        shown = b""
        while True:
            try:
                more = os.read(terminal, 4096)
            except OSError:
                break
            shown += more
            if not more:
                break
        os.close(terminal)
        self.assertRegex(shown.decode(), r"\r\x1b\[K\[#* *\] [0-9]+ %, .* of 4.0M, .*/s")
        self.assertTrue(shown.endswith(b"\r\x1b[K"))

    def test_memory(self):
        with open(ANTIFREEZE, "rb") as file:
            program = file.read()
        if b"__asan_init" in program or b"__tsan_init" in program:
            self.skipTest("a sanitizer has memory of its own")
        source = self.path("large.npy")
        put(source, npy("<f4", (400, 256, 256, 4), b""))
        os.truncate(source, os.path.getsize(source) + 400 * MB)
        peaks = []
        for budget in 16, 64:
            process = subprocess.Popen([ANTIFREEZE, "convert", "--quiet", source, self.path(f"{budget}.zarr"), "--budget", f"{budget}M"])
            peak = 0
            while process.poll() is None:
                peak = max(peak, peak_kib(process.pid))
                time.sleep(.001)
            self.assertEqual(process.returncode, 0)
            self.assertLessEqual(peak, (budget + 16) << 10)
            peaks.append(peak)
        self.assertLess(peaks[0], peaks[1])


if __name__ == "__main__":
    if len(sys.argv) < 5:
        sys.exit(__doc__)
    ANTIFREEZE, CONVERTER, folder, LIBRARY = map(os.path.abspath, sys.argv[1:5])
    os.environ["ANTIFREEZE_LOADER"] = LIBRARY
    sys.path.insert(0, folder)
    from antifreeze.feed import native
    del sys.argv[1:5]
    unittest.main()
