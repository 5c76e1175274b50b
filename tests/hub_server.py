"""A Hugging Face hub of one model, on a local port: its API, its files, and the ways in which it can fail."""

from __future__ import annotations

import hashlib
import json
import re
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import Any, Literal
from urllib.parse import parse_qs, unquote, urlsplit

MODEL = "tests/opus-mt-tiny"

# Kept in Git LFS, as on the public hub: their sha256 is told, and they come from another host.
_LARGE = (".safetensors", ".bin", ".h5", ".spm")


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    range: str | None
    authorization: str | None


@dataclass(frozen=True)
class Cut:
    """A transfer that breaks off: the connection is closed or reset, or nothing more comes."""

    after: int
    how: Literal["close", "reset", "silence"]


@dataclass
class Hub:
    url: str
    commits: dict[str, Path] = field(default_factory=dict)  # commit -> folder of its files
    branches: dict[str, str] = field(default_factory=dict)  # branch or tag -> commit
    token: str | None = None  # without it, the model cannot be seen
    gated: bool = False
    status: int | None = None  # answer everything with it
    page: bytes | None = None  # answer everything with this HTML
    served: dict[str, bytes] = field(default_factory=dict)  # file -> what comes in its place
    promised: dict[str, dict[str, Any]] = field(
        default_factory=dict
    )  # file -> what is told of it in place of the truth
    cuts: dict[str, list[Cut]] = field(default_factory=dict)  # file -> what becomes of its next transfers
    requests: list[Request] = field(default_factory=list)
    silent: Event = field(default_factory=Event)  # a transfer has fallen silent
    closing: Event = field(default_factory=Event)

    def transfers(self) -> list[str]:
        """The files whose bytes were sent, in order."""
        paths = [request.path for request in self.requests if request.method == "GET"]
        return [
            path.rpartition("/")[2]
            for path in paths
            if path.startswith("/cdn/") or ("/resolve/" in path and not path.endswith(_LARGE))
        ]

    def ranges(self, name: str) -> list[str]:
        """The ranges of the file that were asked for."""
        asked = [request for request in self.requests if request.path.endswith(f"/{name}")]
        return list(dict.fromkeys(request.range for request in asked if request.range))


@contextmanager
def hub_server() -> Iterator[Hub]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    hub = Hub(f"http://127.0.0.1:{server.server_port}")
    setattr(server, "hub", hub)  # noqa: B010 (types see no such attribute)
    Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield hub
    finally:
        hub.closing.set()
        server.shutdown()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # with it, every answer takes 40 ms

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def log_message(self, *_: Any) -> None:
        """Keep the test's output clean."""

    @property
    def hub(self) -> Hub:
        hub: Hub = getattr(self.server, "hub")  # noqa: B009
        return hub

    def _answer(self) -> None:
        url = urlsplit(self.path)
        path = unquote(url.path)
        self.hub.requests.append(Request(self.command, path, self.headers["Range"], self.headers["Authorization"]))
        if self.hub.page is not None:
            self._send(200, self.hub.page, {"Content-Type": "text/html"})
        elif self.hub.status is not None:
            self._refuse(self.hub.status, None)
        elif info := re.fullmatch(r"/api/models/([^/]+/[^/]+)(?:/revision/(.+))?", path):
            if commit := self._commit(info[1], info[2] or "main"):
                self._send_info(commit, blobs="blobs" in parse_qs(url.query))
        elif file := re.fullmatch(r"/([^/]+/[^/]+)/resolve/([^/]+)/([^/]+)", path):
            if commit := self._commit(file[1], file[2]):
                self._resolve(commit, file[3])
        elif large := re.fullmatch(r"/cdn/([^/]+)/([^/]+)", path):
            self._send_file(large[2], self._content(self.hub.commits[large[1]] / large[2]))
        else:
            self._refuse(404, None)

    def _commit(self, model: str, revision: str) -> str | None:
        """The commit that is asked for; None where the request has been refused."""
        commit = self.hub.branches.get(revision, revision)
        if model != MODEL:
            self._refuse(404, "RepoNotFound")
        elif self.hub.token and self.headers["Authorization"] != f"Bearer {self.hub.token}":
            self._refuse(*((403, "GatedRepo") if self.hub.gated else (401, None)))
        elif commit not in self.hub.commits:
            self._refuse(404, "RevisionNotFound")
        else:
            return commit
        return None

    def _send_info(self, commit: str, blobs: bool) -> None:
        siblings = []
        for path in sorted(self.hub.commits[commit].iterdir()):
            sibling: dict[str, Any] = {"rfilename": path.name}
            if blobs:
                content = path.read_bytes()
                sibling |= {"size": len(content), "blobId": _git_id(content)}
                if path.name.endswith(_LARGE):
                    sibling["lfs"] = {
                        "size": len(content),
                        "sha256": hashlib.sha256(content).hexdigest(),
                        "pointerSize": 134,
                    }
                    sibling["lfs"] |= self.hub.promised.get(path.name, {})
                else:
                    sibling |= self.hub.promised.get(path.name, {})
            siblings.append(sibling)
        siblings += [
            {"rfilename": name} for name in self.hub.promised if not (self.hub.commits[commit] / name).exists()
        ]
        info = {"_id": "0", "id": MODEL, "modelId": MODEL, "sha": commit, "siblings": siblings}
        self._send(200, json.dumps(info).encode(), {"Content-Type": "application/json"})

    def _resolve(self, commit: str, name: str) -> None:
        if not (self.hub.commits[commit] / name).is_file():
            self._refuse(404, "EntryNotFound")
            return
        content = self._content(self.hub.commits[commit] / name)
        if not name.endswith(_LARGE):
            self._send_file(name, content, {"X-Repo-Commit": commit, "ETag": f'"{_git_id(content)}"'})
            return
        self._send(
            302,
            b"",
            {
                # By another name, which to a client is another host.
                "Location": f"http://localhost:{urlsplit(self.hub.url).port}/cdn/{commit}/{name}",
                "X-Repo-Commit": commit,
                "X-Linked-ETag": f'"{hashlib.sha256(content).hexdigest()}"',
                "X-Linked-Size": str(len(content)),
            },
        )

    def _content(self, path: Path) -> bytes:
        return self.hub.served.get(path.name) or path.read_bytes()

    def _send_file(self, name: str, content: bytes, headers: dict[str, str] | None = None) -> None:
        headers = {"Accept-Ranges": "bytes", **(headers or {})}
        cut = self.hub.cuts[name].pop(0) if self.command == "GET" and self.hub.cuts.get(name) else None
        if self.headers["Range"] is None:
            self._send(200, content, headers, cut)
            return
        start = int(self.headers["Range"].removeprefix("bytes=").removesuffix("-"))
        if start >= len(content):
            self._send(416, b"", {"Content-Range": f"bytes */{len(content)}"})
            return
        headers["Content-Range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
        self._send(206, content[start:], headers, cut)

    def _refuse(self, status: int, code: str | None) -> None:
        headers = {"Content-Type": "application/json"} | ({"X-Error-Code": code} if code else {})
        self._send(status, json.dumps({"error": code or "no"}).encode(), headers)

    def _send(self, status: int, body: bytes, headers: dict[str, str], cut: Cut | None = None) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "HEAD":
            return
        if cut is None:
            self.wfile.write(body)
            return
        self.wfile.write(body[: cut.after])
        self.close_connection = True
        if cut.how == "silence":
            self.hub.silent.set()
            self.hub.closing.wait()
        if cut.how == "reset":
            time.sleep(0.2)  # in which the client reads what has come
            # Closing without lingering throws away what the client has not acknowledged, and resets.
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()


def _git_id(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
