"""What API Gateway's HTTP API does, on a local port: HTTP requests become events, responses become HTTP."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any

from local.emulator import Emulator
from tests.events import http_api_event


@contextmanager
def http_bridge(running: Emulator) -> Iterator[str]:
    """Serve the emulated function; gives the base URL. One request at a time, which is all the emulator takes."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._forward()

        def do_POST(self) -> None:
            self._forward()

        def log_message(self, *_: Any) -> None:
            """Keep the test's output clean."""

        def _forward(self) -> None:
            content_type = self.headers["Content-Type"]
            body: Any = self.rfile.read(int(self.headers["Content-Length"] or 0))
            if content_type is not None and content_type.startswith("application/json"):
                body = body.decode()  # HTTP APIs hand JSON over as text, and everything else base64-encoded
            event = http_api_event(self.command, self.path, body or None, content_type)
            response = json.loads(running.invoke(json.dumps(event).encode()))
            self.send_response(response["statusCode"])
            for name, value in response["headers"].items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(response["body"].encode())

    server = HTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()
