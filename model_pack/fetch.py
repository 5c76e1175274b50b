"""Fetches a checkpoint from a Hugging Face hub, or a mirror of one, and locks what came by commit and hash."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from model_pack import hub
from model_pack.checkpoint import LOCK_FILE
from model_pack.errors import ModelPackError
from model_pack.files import write_atomically

DEFAULT_REVISION = "main"

_PARTS = ".fetch"  # subfolder of what has come, until everything has; the next run goes on with it


@dataclass(frozen=True)
class _Facts:
    size: int
    sha256: str


@dataclass(frozen=True)
class _Lock:
    """What lies in a fetched folder, and where it came from: the content of the lock file."""

    model_id: str
    endpoint: str
    revision: str
    commit: str
    files: dict[str, _Facts]


def fetch(model_id: str, revision: str | None, folder: Path, say: Callable[[str], None]) -> None:
    """Fetch a MarianMT checkpoint from a Hugging Face hub.

    The hub is https://huggingface.co, or the one that HF_ENDPOINT names; HF_TOKEN is for private models.
    The folder changes only when every file has come and has the right hash. A broken fetch goes on where it
    stopped when it is run again, and what lies there with the right hash is not fetched again.

    Args:
        revision: commit, branch or tag; None for the main branch.
        say: called with a line about each stage.

    Raises:
        ModelPackError: the hub cannot be reached or refuses, the model is not there or lacks a file, a
            transfer broke off, bytes have another hash than the hub or the lock says, or `folder` holds
            something else.
    """
    revision = revision or DEFAULT_REVISION
    held = _held(folder, model_id)
    endpoint = hub.endpoint_of_environment()
    say(f"Looking up {model_id} at {revision} on {hub.shown(endpoint)}")
    source = hub.look_up(model_id, revision, endpoint)
    say(f"Fetching commit {source.commit}")
    try:
        files = _fetch_files(source, held, folder, say)
        lock = _Lock(model_id, source.hub, revision, source.commit, files)
        write_atomically(folder / LOCK_FILE, json.dumps(asdict(lock), indent=2) + "\n")
        shutil.rmtree(folder / _PARTS)
    except OSError as error:
        raise ModelPackError(f"what was fetched cannot be kept in {folder}: {error}") from error
    size = sum(facts.size for facts in files.values())
    say(f"Fetched {folder}: {len(files)} files, {size / 1e6:.1f} MB")


def _held(folder: Path, model_id: str) -> _Lock | None:
    """The lock of what lies in the folder; None in a new folder, and in one whose first fetch was broken off."""
    if folder.exists() and not folder.is_dir():
        raise ModelPackError(f"{folder} is not a folder: choose another --local-dir.")
    lock_path = folder / LOCK_FILE
    if lock_path.is_file():
        try:
            content = json.loads(lock_path.read_text("utf-8"))
            files = {name: _Facts(**facts) for name, facts in content["files"].items() if name in hub.FILES}
            held = _Lock(**{**content, "files": files})
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            raise ModelPackError(f"{lock_path} is damaged: remove {folder} and fetch anew.") from error
        if held.model_id != model_id:
            raise ModelPackError(f"{folder} holds {held.model_id}: choose another --local-dir for {model_id}.")
        return held
    strangers = [name for name in hub.FILES if (folder / name).exists()]
    if strangers and not (folder / _PARTS).is_dir():
        raise ModelPackError(
            f"{folder} holds {strangers[0]} without a {LOCK_FILE}, so it was not fetched: choose another --local-dir."
        )
    return None


def _fetch_files(source: hub.Source, held: _Lock | None, folder: Path, say: Callable[[str], None]) -> dict[str, _Facts]:
    """Bring every file of the source into the folder, and take what the source no longer has out of it."""
    parts = folder / _PARTS / source.commit
    parts.mkdir(parents=True, exist_ok=True)
    for other in parts.parent.iterdir():
        if other != parts:
            shutil.rmtree(other)
    files: dict[str, _Facts] = {}
    fetched: dict[Path, Path] = {}
    for name, promise in source.files.items():
        path, part = folder / name, parts / f"{name}.part"
        locked = held.files.get(name) if held and held.commit == source.commit else None
        if locked and promise.sha256 not in (None, locked.sha256):
            raise _wrong_hash(name, str(promise.sha256), locked.sha256, f"{folder / LOCK_FILE} says", source)
        wanted = locked.sha256 if locked else promise.sha256
        if wanted and path.is_file():
            files[name] = _facts(path)
            if files[name].sha256 == wanted:
                continue
        say(f"Fetching {name}")
        hub.transfer(source, name, part)
        files[name] = _facts(part)
        try:
            if wanted not in (None, files[name].sha256):
                says = f"{folder / LOCK_FILE} says" if locked else f"{source.hub} says itself"
                raise _wrong_hash(name, files[name].sha256, str(wanted), says, source)
            if promise.size not in (None, files[name].size):
                raise ModelPackError(
                    f"{name} came with {files[name].size} bytes, but {source.hub} says that it has {promise.size}: "
                    "run the same command again, or set HF_ENDPOINT to another hub."
                )
        except ModelPackError:
            part.unlink()
            raise
        fetched[part] = path
    for part, path in fetched.items():
        part.replace(path)
    for name in set(held.files if held else ()) - set(files):
        (folder / name).unlink(missing_ok=True)
    return files


def _wrong_hash(name: str, got: str, wanted: str, says: str, source: hub.Source) -> ModelPackError:
    return ModelPackError(
        f"{name} at commit {source.commit} has the sha256 {got} on {source.hub}, but {says} {wanted}. One commit has "
        "one content, so one of them is wrong: set HF_ENDPOINT to a hub that you trust. Nothing was replaced."
    )


def _facts(file: Path) -> _Facts:
    with file.open("rb") as content:
        return _Facts(file.stat().st_size, hashlib.file_digest(content, "sha256").hexdigest())
