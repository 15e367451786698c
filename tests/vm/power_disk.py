"""A disk with a volatile write cache, as real disks have one: what was not flushed when the power goes is lost, or half of it.

An NBD server on a Unix socket, for one machine (QEMU's NBD client) at a time. Writes go into memory; FLUSH and FUA take them to
the file. cut() is the moment of the power cut: nothing is taken or answered any more, and of each sector that was not flushed
chance decides whether it has reached the file, 4 KiB at a time. So a flush that a program forgets is found, and a write that
is torn, too.
"""
import os
import random
import socket
import struct
import threading
import time

SECTOR = 512
# What a disk writes whole or not at all: 4 KiB for nearly all that are made today. With single sectors ext4 once found its journal
# corrupt and was not mounted; that its last block was torn is the likely reason.
WHOLE = 4096 // SECTOR
HAS_FLAGS, SEND_FLUSH, SEND_FUA = 1, 4, 8
READ, WRITE, DISCONNECT, FLUSH = range(4)
OPTION_ABORT, OPTION_INFO, OPTION_GO = 2, 6, 7
REPLY_ACK, REPLY_INFO, REPLY_UNSUPPORTED = 1, 3, 0x80000001
FLAG_FUA = 1
EINVAL = 22


class PowerDisk:
    def __init__(self, image, path, seed):
        self.file = os.open(image, os.O_RDWR)
        self.size = os.fstat(self.file).st_size
        self.random = random.Random(seed)
        self.flush_s = 0.       # how long a flush takes, at least
        self.lost = self.kept = 0
        self.flushing = None    # since when, time.monotonic()
        self.worst_s = 0.       # that a flush took, since the power came
        self.lock = threading.Lock()
        self.dirty = {}         # sector: its newest bytes
        self.dead = False
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.bind(path)
        self.socket.listen(1)
        threading.Thread(target=self.serve, daemon=True).start()

    def cut(self, share):
        """The power goes; `share`: how likely a sector in the cache is on the disk already. Returns when, time.monotonic()."""
        with self.lock:
            at = time.monotonic()
            self.dead = True
            self.note_flush()
            wholes = {w for w in sorted({s // WHOLE for s in self.dirty}) if self.random.random() < share}
            kept = [s for s in self.dirty if s // WHOLE in wholes]
            self.lost, self.kept = len(self.dirty) - len(kept), len(kept)
            for sector in kept:
                os.pwrite(self.file, self.dirty[sector], sector * SECTOR)
            self.dirty = {}
        return at

    def power_on(self):
        self.dead = False
        self.worst_s, self.flushing = 0., None

    # ---- the protocol ----

    def serve(self):
        while True:
            peer = self.socket.accept()[0]
            try:
                if self.shake_hands(peer):
                    while self.answer(peer):
                        pass
            except (EOFError, OSError):
                pass
            peer.close()

    @staticmethod
    def take(peer, n):
        got = bytearray()
        while len(got) < n:
            part = peer.recv(n - len(got))
            if not part:
                raise EOFError
            got += part
        return bytes(got)

    def shake_hands(self, peer):
        peer.sendall(b"NBDMAGIC" + b"IHAVEOPT" + struct.pack(">H", 1 | 2))
        self.take(peer, 4)
        while True:
            _, option, length = struct.unpack(">8sII", self.take(peer, 16))
            self.take(peer, length)

            def reply(kind, data=b"", option=option):
                peer.sendall(struct.pack(">QIII", 0x3e889045565a9, option, kind, len(data)) + data)

            if option in (OPTION_GO, OPTION_INFO):
                reply(REPLY_INFO, struct.pack(">HQH", 0, self.size, HAS_FLAGS | SEND_FLUSH | SEND_FUA))
                reply(REPLY_ACK)
                if option == OPTION_GO:
                    return True
            elif option == OPTION_ABORT:
                reply(REPLY_ACK)
                return False
            else:
                reply(REPLY_UNSUPPORTED)

    def answer(self, peer):
        _, flags, kind, handle, at, length = struct.unpack(">IHHQQI", self.take(peer, 28))
        data, error = b"", 0
        if kind == DISCONNECT:
            return False
        if kind == WRITE:
            data = self.take(peer, length)
        if kind == FLUSH or flags & FLAG_FUA:
            self.flushing = time.monotonic()
            time.sleep(self.flush_s)
        with self.lock:
            if self.dead:
                return False
            if kind == READ:
                data = self.read(at, length)
            elif kind == WRITE:
                self.write(at, data)
                data = b""
                if flags & FLAG_FUA:
                    self.take_down(range(at // SECTOR, (at + length) // SECTOR))
            elif kind == FLUSH:
                self.take_down(list(self.dirty))
            else:
                error = EINVAL
            peer.sendall(struct.pack(">IIQ", 0x67446698, error, handle) + data)
            self.note_flush()
        return True

    # ---- the cache; under the lock ----

    def note_flush(self):
        if self.flushing:
            self.worst_s = max(self.worst_s, time.monotonic() - self.flushing)
            self.flushing = None

    def read(self, at, length):
        data = bytearray(os.pread(self.file, length, at))
        for i in range(0, length, SECTOR):
            newer = self.dirty.get((at + i) // SECTOR)
            if newer:
                data[i:i + SECTOR] = newer
        return bytes(data)

    def write(self, at, data):
        for i in range(0, len(data), SECTOR):
            self.dirty[(at + i) // SECTOR] = data[i:i + SECTOR]

    def take_down(self, sectors):
        for sector in sectors:
            data = self.dirty.pop(sector, None)
            if data:
                os.pwrite(self.file, data, sector * SECTOR)
