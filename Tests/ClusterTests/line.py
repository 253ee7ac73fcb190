"""line.py HOST PORT STORE-HOST STORE-PORT: a line to a store, which does what is written to its standard input:

    well     passes everything on
    slow     passes answers on late
    cut      breaks all connections, old and new
    silent   passes nothing on, and keeps the connections
    busy     answers half of the requests with 503
    damaged  changes a byte in the content of some objects, and the length or the SHA-256 in the heads of some
    short    ends some answers, and their connections, in the middle of the content
"""

import asyncio
import contextlib
import random
import re
import sys

BODY = b"<Error><Code>SlowDown</Code></Error>"
BUSY = b"HTTP/1.1 503 Slow Down\r\nContent-Type: application/xml\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s" % (
    len(BODY), BODY)


class Line:
    def __init__(self, host, port):
        self.host, self.port, self.mode, self.changed, self.writers = host, port, "well", asyncio.Event(), set()

    def set(self, mode):
        self.mode = mode
        self.changed.set()
        self.changed = asyncio.Event()
        if mode in ("cut", "busy"):
            for writer in self.writers:
                writer.transport.abort()

    async def accept(self, reader, writer):
        self.writers.add(writer)
        upward = None
        try:
            if self.mode == "cut":
                return
            if self.mode == "busy" and random.random() < 0.5:
                await reader.readuntil(b"\r\n\r\n")
                writer.write(BUSY)
                await writer.drain()
                # Until the client has read it and closes; its content goes nowhere.
                while await reader.read(65536):
                    pass
                return
            answers, upward = await asyncio.open_connection(self.host, self.port)
            self.writers.add(upward)
            talk = Talk()
            async with asyncio.TaskGroup() as group:
                group.create_task(self.pump(reader, upward, talk, isAnswer=False))
                group.create_task(self.pump(answers, writer, talk, isAnswer=True))
        except (OSError, EOFError, ExceptionGroup):
            pass
        finally:
            for end in filter(None, (writer, upward)):
                self.writers.discard(end)
                end.transport.abort() if self.mode == "cut" else end.close()

    async def pump(self, reader, writer, talk, isAnswer):
        while content := await reader.read(65536):
            if isAnswer and self.mode == "slow":
                await asyncio.sleep(random.uniform(0.1, 1))
            while self.mode == "silent":
                await self.changed.wait()
            if not isAnswer:
                talk.hear(content)
            elif self.mode == "damaged" and talk.asks_for_head:
                content = talk.changed_head(content)
            elif self.mode == "damaged" and talk.is_of_sound and (place := talk.place(content)):
                content = content[:place] + bytes([content[place] ^ 0x10]) + content[place + 1:]
            elif self.mode == "short" and (place := talk.place(content)):
                writer.write(content[:place])
                await writer.drain()
                break
            writer.write(content)
            await writer.drain()
        # An end in one direction ends both.
        raise EOFError


class Talk:
    """What is said on one connection, where requests follow each other."""

    def __init__(self):
        # Whether the last request gets an object that was derived from a sound, or is one.
        self.is_of_sound = False
        # Whether it gets the head of one.
        self.asks_for_head = False

    def hear(self, content):
        line = content.split(b"\r\n", 1)[0]
        if line.endswith(b" HTTP/1.1"):
            is_of_sound = b"/recordings/" in line and b".json" not in line
            self.is_of_sound = is_of_sound and line.startswith(b"GET ")
            self.asks_for_head = is_of_sound and line.startswith(b"HEAD ")

    def changed_head(self, content):
        """A head with another length or SHA-256, now and then, and hardly ever the same one twice."""
        if not content.startswith(b"HTTP/1.1 200") or random.random() > 0.3:
            return content
        name, digits = random.choice([(b"content-length", b"0123456789"), (b"x-amz-meta-sha256", b"0123456789abcdef")])

        def other(field):
            return field[1] + bytes([random.choice(digits[1:]), *random.choices(digits, k=len(field[2]) - 1)])

        return re.sub(rb"(?i)(\r\n" + name + rb": *)([0-9a-f]+)", other, content, count=1)

    def place(self, content):
        """Where to harm a piece of an answer: somewhere in its content, now and then; None: nowhere."""
        begins = content.startswith(b"HTTP/1.1 ")
        start = content.find(b"\r\n\r\n") + 4 if begins else 0
        if start >= len(content) or begins and not content.startswith(b"HTTP/1.1 20") or random.random() > 0.3:
            return None
        return max(1, random.randrange(start, len(content)))


async def main():
    line = Line(sys.argv[3], int(sys.argv[4]))
    await asyncio.start_server(line.accept, sys.argv[1], int(sys.argv[2]))
    print("ready", flush=True)
    loop = asyncio.get_running_loop()
    while mode := await loop.run_in_executor(None, sys.stdin.readline):
        line.set(mode.strip())


with contextlib.suppress(KeyboardInterrupt):
    asyncio.run(main())
