"""As much of the Hugging Face hub as a model needs, on this machine: repositories are folders."""

import base64
import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

TOKEN = "hf_loopback"
SHA = "0" * 39 + "1"


class _Hub(BaseHTTPRequestHandler):
    root: Path

    def do_POST(self) -> None:
        content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            return self._answer(401, {"error": "Invalid username or password."})
        parts = self.path.split("/")
        if self.path == "/api/repos/create":
            asked = json.loads(content)
            name = f"{asked['organization']}/{asked['name']}"
            (self.root / name).mkdir(parents=True, exist_ok=True)
            return self._answer(200, {"url": f"http://{self.headers['Host']}/{name}"})
        if self.path == "/api/validate-yaml":
            return self._answer(200, {"errors": [], "warnings": []})
        if len(parts) > 5 and parts[5] == "preupload":
            files = [
                {"path": file["path"], "uploadMode": "regular", "shouldIgnore": False}
                for file in json.loads(content)["files"]
            ]
            return self._answer(200, {"files": files})
        if len(parts) > 5 and parts[5] == "commit":
            for line in content.splitlines():
                change = json.loads(line)
                if change["key"] == "file":
                    path = self.root / parts[3] / parts[4] / change["value"]["path"]
                    path.write_bytes(base64.b64decode(change["value"]["content"]))
            address = f"http://{self.headers['Host']}/{parts[3]}/{parts[4]}/commit/{SHA}"
            answer = {"success": True, "commitOid": SHA, "commitUrl": address}
            return self._answer(200, answer)
        return self._answer(404, {"error": f"no POST {self.path}"})

    def do_GET(self) -> None:
        path, _, _ = self.path.partition("?")
        parts = path.split("/")
        if path.startswith("/api/models/"):
            folder = self.root / parts[3] / parts[4]
            if not folder.is_dir():
                return self._answer(404, {"error": "Repository not found"}, code="RepoNotFound")
            names = sorted(file.name for file in folder.iterdir())
            if len(parts) > 5 and parts[5] == "tree":
                return self._answer(200, [_entry(folder / name) for name in names])
            siblings = [{"rfilename": name} for name in names]
            answer = {"id": "/".join(parts[3:5]), "sha": SHA, "siblings": siblings}
            return self._answer(200, answer | {"private": False, "tags": [], "downloads": 0})
        if len(parts) > 5 and parts[3] == "resolve":
            return self._send(self.root / parts[1] / parts[2] / parts[5])
        return self._answer(404, {"error": f"no GET {self.path}"})

    def do_HEAD(self) -> None:
        self.do_GET()

    def _send(self, path: Path) -> None:
        if not path.is_file():
            return self._answer(404, {"error": "Entry not found"}, code="EntryNotFound")
        content = path.read_bytes()
        return self._write(200, content, {"ETag": f'"{_digest(content)}"', "X-Repo-Commit": SHA})

    def _answer(self, status: int, content: Any, *, code: str | None = None) -> None:
        headers = {"Content-Type": "application/json"} | ({"X-Error-Code": code} if code else {})
        self._write(status, json.dumps(content).encode(), headers)

    def _write(self, status: int, content: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in (headers | {"Content-Length": str(len(content))}).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


def _digest(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def _entry(path: Path) -> dict[str, Any]:
    content = path.read_bytes()
    return {"type": "file", "path": path.name, "size": len(content), "oid": _digest(content)}


@contextmanager
def loopback_hub(root: Path) -> Iterator[str]:
    """A hub whose repositories are folders under a root, by its address."""
    handler = type("Hub", (_Hub,), {"root": root})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
