"""A disk with a volatile cache whose power can be cut.

A FUSE file system of one file (its root is the file) lies under a loop device. The loop device turns a flush of the file
system above into an fsync of that file, and says that it can't do FUA, so that the kernel makes each such write a write and
a flush: nothing that a file system asks of a disk is lost on the way. All writes and flushes are logged in the order in
which they came. A flush covers the writes that were answered before it came; one process answers one request at a time.

After a cut, the disk holds all that was flushed, and of the writes since: none, all up to some moment, or any of them, also
without some of their sectors. `Disk.remains` makes that from the log.
"""

import ctypes
import mmap
import os
import random
import struct
import subprocess
import time

SECTOR, FLUSH = 512, (1 << 64) - 1
RECORD = struct.Struct("<QI")
LARGEST_WRITE = 1 << 20
# How each file system is made, in its smallest usual size.
MAKERS = {
    "ext4": (256, ["mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0"]),
    "xfs": (384, ["mkfs.xfs", "-q", "-f"]),
    "btrfs": (256, ["mkfs.btrfs", "-q", "-f"]),
}
# Operations of FUSE's protocol (linux/fuse.h).
FORGET, GETATTR, SETATTR, OPEN, READ, WRITE, STATFS, RELEASE, FSYNC, FLUSH_FILE, INIT, INTERRUPT, BATCH_FORGET = (
    2, 3, 4, 14, 15, 16, 17, 18, 20, 25, 26, 36, 42)


def serve(device, image, log):
    """Answers the kernel's requests for the file until it is unmounted."""
    with open(image, "r+b") as file:
        content = mmap.mmap(file.fileno(), 0)
    attributes = struct.pack(
        "=QII QQQ QQQ III IIIIIII", 3600, 0, 0, 1, len(content), len(content) // SECTOR, 0, 0, 0, 0, 0, 0, 0o100600, 1, 0, 0, 0,
        4096, 0)
    while True:
        try:
            request = os.read(device, LARGEST_WRITE + 65536)
        except OSError:
            return
        _, operation, unique = struct.unpack_from("=IIQ", request)
        error, answer = 0, b""
        if operation in (FORGET, BATCH_FORGET, INTERRUPT):
            continue
        if operation == INIT:
            # Large writes, and as many pages as they need.
            answer = struct.pack("=IIIIHHIIHHI28x", 7, 31, 65536, 1 << 5 | 1 << 22, 16, 12, LARGEST_WRITE, 1, 256, 0, 0)
        elif operation in (GETATTR, SETATTR):
            answer = attributes
        elif operation == OPEN:
            # FOPEN_DIRECT_IO: the kernel keeps nothing of the file.
            answer = struct.pack("=QIi", 0, 1, 0)
        elif operation == READ:
            _, offset, size = struct.unpack_from("=QQI", request, 40)
            answer = content[offset:offset + size]
        elif operation == WRITE:
            _, offset, size = struct.unpack_from("=QQI", request, 40)
            written = request[80:80 + size]
            content[offset:offset + size] = written
            os.write(log, RECORD.pack(offset, size) + written)
            answer = struct.pack("=II", size, 0)
        elif operation == FSYNC:
            os.write(log, RECORD.pack(FLUSH, 0))
        elif operation not in (STATFS, RELEASE, FLUSH_FILE):
            error = -38
        if operation == STATFS:
            answer = bytes(80)
        os.write(device, struct.pack("=IiQ", 16 + len(answer), error, unique) + answer)


class Disk:
    """A new disk with a file system, mounted at `folder`/disk."""

    def __init__(self, folder, kind):
        self.kind, self.folder = kind, folder
        self.base, self.place = os.path.join(folder, kind), os.path.join(folder, "disk")
        self.log, device = os.path.join(folder, "log"), os.path.join(folder, "device")
        megabytes, maker = MAKERS[kind]
        if not os.path.exists(self.base):
            with open(self.base, "wb") as file:
                file.truncate(megabytes << 20)
            subprocess.run([*maker, self.base], check=True, stdout=subprocess.DEVNULL)
        image = self.copy("image")
        os.makedirs(self.place, exist_ok=True)
        open(device, "wb").close()
        fuse = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
        options = f"fd={fuse},rootmode=100000,user_id=0,group_id=0".encode()
        self.device, libc = device, ctypes.CDLL(None, use_errno=True)
        if libc.mount(b"power", device.encode(), b"fuse.power", 0, options):
            raise OSError(ctypes.get_errno(), "mounting FUSE")
        self.server = os.fork()
        if self.server == 0:
            serve(fuse, image, os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600))
            os._exit(0)
        os.close(fuse)
        mount(device, self.place)
        loop = subprocess.run(["findmnt", "-no", "SOURCE", self.place], check=True, capture_output=True, text=True).stdout
        with open(f"/sys/block/{os.path.basename(loop.strip())}/queue/write_cache") as file:
            if file.read() != "write back\n":
                raise RuntimeError("the loop device passes no flushes on")

    def copy(self, name):
        path = os.path.join(self.folder, name)
        subprocess.run(["cp", "--sparse=always", self.base, path], check=True)
        return path

    def log_bytes(self):
        """The present moment."""
        return os.path.getsize(self.log)

    def records(self, end):
        """The log up to a moment: where each record ends, and what was written at which offset of the disk."""
        with open(self.log, "rb") as file:
            log, position = memoryview(file.read(end)), 0
        while position + RECORD.size <= len(log):
            offset, size = RECORD.unpack_from(log, position)
            start, position = position + RECORD.size, position + RECORD.size + size
            if position <= len(log):
                yield position, offset, log[start:position]

    def instant(self, moment, draw):
        """A moment between `moment` and now; most often one between a write and its flush, if there is one."""
        later = [(end, offset) for end, offset, _ in self.records(self.log_bytes()) if end > moment]
        writes = [end for end, offset in later if offset != FLUSH]
        return draw.choice(writes if writes and draw.random() < 0.75 else [moment, *(end for end, _ in later)])

    def remove(self):
        unmount(self.place)
        unmount(self.device)
        os.waitpid(self.server, 0)

    def remains(self, instant, what, seed):
        """The path of a disk as it may be after a cut at an instant. `what` remains of the writes that weren't flushed:
        "none", a "prefix", or "torn" ones. Also returns their number, and how many of them are there, whole or in part."""
        draw, flushed, rest = random.Random(seed), [], []
        for _, offset, written in self.records(instant):
            if offset == FLUSH:
                flushed, rest = flushed + rest, []
            else:
                rest.append((offset, written))
        kept = {"none": [], "prefix": rest[:draw.randint(0, len(rest))],
                "torn": [write for write in rest if draw.random() < 0.5]}[what]
        path = self.copy("remains")
        with open(path, "r+b") as file:
            for offset, written in flushed:
                file.seek(offset)
                file.write(written)
            for offset, written in kept:
                is_torn = what == "torn" and draw.random() < 0.5
                for start in range(0, len(written), SECTOR) if is_torn else ():
                    if draw.random() < 0.5:
                        file.seek(offset + start)
                        file.write(written[start:start + SECTOR])
                if not is_torn:
                    file.seek(offset)
                    file.write(written)
        return path, len(rest), len(kept)


def mount(image, place):
    subprocess.run(["mount", "-o", "loop", image, place], check=True)


def unmount(place):
    """Unmounts as soon as the last process that uses it is gone. The loop device goes with it."""
    end = time.monotonic() + 30
    while (ended := subprocess.run(["umount", place], capture_output=True)).returncode and b"not mounted" not in ended.stderr:
        if time.monotonic() > end:
            raise RuntimeError(f"{place} is still in use")
        time.sleep(0.02)
