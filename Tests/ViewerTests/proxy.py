"""A proxy in front of the service that sometimes responds by itself, as proxies do."""

import contextlib
import http.client
import http.server
import re
import socket
import struct
import threading

RESET = object()


class Fault:
    """What one request is answered in the service's place; `isPassed`: after the service has had it, for a lost answer."""

    def __init__(self, method, status, fields={}, body=b"<h1>Proxy</h1>", is_passed=False, before=None):
        self.method, self.status, self.fields, self.body = method, status, fields, body
        self.is_passed, self.before = is_passed, before


class Proxy:
    """Serves the service below `prefix`, which it removes from requests, on its own port.

    `faults` meet the next requests of their methods to /v1/uploads, in their order; all others pass. `seen` has the method,
    path and answer of each request that may change something, `passed` the bytes of bodies that the service was sent.
    """

    def __init__(self, service, prefix=""):
        self.faults, self.seen, self.passed = [], [], 0
        self.lock = threading.Lock()
        proxy = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self):
                proxy.answer(self, service, prefix)

            do_GET = do_HEAD = do_POST = do_PATCH = do_DELETE = do_OPTIONS = answer

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        # A page that is closed breaks its connections off.
        self.server.handle_error = lambda *_: None
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()
        self.address = f"http://127.0.0.1:{self.server.server_address[1]}{prefix}"

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def answer(self, handler, service, prefix):
        fault = self.fault(handler)
        length = int(handler.headers.get("Content-Length") or 0)
        body = handler.rfile.read(length)
        if len(body) < length:
            # The page was closed meanwhile. What it sent isn't a request.
            handler.close_connection = True
            return
        if fault and fault.before:
            fault.before()
        status, fields, content = (404, {}, b"") if not handler.path.startswith(prefix + "/") else (None, {}, b"")
        if status is None and (not fault or fault.is_passed):
            status, fields, content = self.passing(handler, service, handler.path[len(prefix):], body)
        if fault:
            status, fields, content = fault.status, fault.fields, fault.body
        if handler.command not in ("GET", "OPTIONS"):
            with self.lock:
                self.seen.append((handler.command, handler.path, 0 if status is RESET else status))
        if status is RESET:
            handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            handler.close_connection = True
            handler.connection.close()
            return
        handler.send_response_only(status)
        for name, value in fields.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(content)))
        # The page may have gone on.
        with contextlib.suppress(OSError):
            handler.end_headers()
            if handler.command != "HEAD":
                handler.wfile.write(content)

    def fault(self, handler):
        if not re.search("/v1/uploads(/|$)", handler.path):
            return None
        with self.lock:
            return self.faults.pop(0) if self.faults and self.faults[0].method == handler.command else None

    def passing(self, handler, service, path, body):
        connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=120)
        try:
            fields = {name: value for name, value in handler.headers.items() if name.lower() not in ("connection", "content-length")}
            connection.request(handler.command, path, body or (b"" if handler.command in ("POST", "PATCH") else None), fields)
            answer = connection.getresponse()
            content = answer.read()
            with self.lock:
                self.passed += len(body) if handler.command == "PATCH" else 0
            kept = {name: value for name, value in answer.headers.items()
                    if name.lower() not in ("connection", "transfer-encoding", "content-length")}
            return answer.status, kept, content
        finally:
            connection.close()
