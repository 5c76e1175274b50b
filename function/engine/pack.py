"""A model pack on disk: its manifest, and the proof that its files are the ones it was built with."""

from __future__ import annotations

import hashlib
import json
import mmap
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from function.engine.background import Background

FORMAT_VERSION = 6
MANIFEST = "manifest.json"
_WEIGHTS_BYTES = 2 << 20  # a file of so many holds weights: nothing is parsed in it
_CHUNK_BYTES = 8 << 20  # few: after each a thread waits for others to let go of Python


class PackError(Exception):
    """The folder is not a model pack that this engine can run; the message says what does not fit."""


@dataclass(frozen=True)
class Language:
    """A language the pack reads or writes.

    Attributes:
        code: BCP 47 code.
        name: English name.
        aliases: other codes that mean the same.
        token: the source token that asks for it as target, such as ">>cmn_Hans<<"; None where none is needed.
    """

    code: str
    name: str
    aliases: tuple[str, ...] = ()
    token: str | None = None

    def answers_to(self, code: str) -> bool:
        """Whether a caller who asks for `code` means this language."""
        return code.lower() in {name.lower() for name in (self.code, *self.aliases)}


@dataclass(frozen=True)
class Network:
    """The sizes that give the graphs' tensors their shapes."""

    d_model: int
    decoder_layers: int
    decoder_attention_heads: int
    max_positions: int  # tokens, eos included, that the encoder can read

    @property
    def head_size(self) -> int:
        return self.d_model // self.decoder_attention_heads


@dataclass(frozen=True)
class Generation:
    """The numbers greedy search depends on, as target ids (rows of the output head)."""

    decoder_start_token_id: int
    eos_token_id: int
    forced_eos_token_id: int | None
    banned_token_ids: tuple[int, ...]
    max_length: int  # target tokens, decoder start and eos included


@dataclass(frozen=True)
class Tensors:
    """Names of one graph's inputs and outputs, in the graph's order."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True)
class ModelPack:
    """A pack that is what its manifest says. `open` is the only way in."""

    path: Path
    model_id: str
    precision: str
    source: Language
    targets: tuple[Language, ...]
    network: Network
    generation: Generation
    tokenizer: dict[str, Any]
    encoder: Tensors
    decoder: Tensors
    _weights_check: Background[None] = field(repr=False, compare=False)

    @classmethod
    def open(cls, path: str | Path, *, wait: bool = True) -> ModelPack:
        """Read the manifest of the pack in folder `path` and check every file against it.

        Args:
            wait: False: return while the hash of the weights is still being computed, in a thread. Then `confirm`
                comes before anything that was computed from them is let out.

        Raises:
            PackError: no manifest, another format version, a missing or altered file,
                or a manifest that lacks a number this engine needs.
        """
        path = Path(path)
        manifest = _read_manifest(path)
        weights = {}
        for name, recorded in manifest["files"].items():
            _check_size(path / name, recorded)
            if recorded["size"] < _WEIGHTS_BYTES:
                _check_hash(path / name, recorded)
            else:
                weights[path / name] = recorded
        pack = cls._read(path, manifest, Background(lambda: _check_hashes(weights)))
        if wait:
            pack.confirm()
        return pack

    def confirm(self) -> None:
        """Wait until the weights, too, are known to be the manifest's.

        Raises:
            PackError: they are not.
        """
        self._weights_check.result()

    @classmethod
    def _read(cls, path: Path, manifest: dict[str, Any], weights_check: Background[None]) -> ModelPack:
        try:
            languages = manifest["languages"]
            return cls(
                path=path,
                model_id=manifest["model"]["id"],
                precision=manifest["quantization"]["precision"],
                source=_language(languages["source"]),
                targets=tuple(_language(entry) for entry in languages["targets"]),
                network=Network(**manifest["network"]),
                generation=_generation(manifest["generation"]),
                tokenizer=manifest["tokenizer"],
                encoder=_tensors(manifest["tensors"]["encoder"]),
                decoder=_tensors(manifest["tensors"]["decoder"]),
                _weights_check=weights_check,
            )
        except (KeyError, TypeError) as error:
            raise PackError(f"{path / MANIFEST} is incomplete or malformed: {error}") from error


def _read_manifest(path: Path) -> dict[str, Any]:
    try:
        manifest: dict[str, Any] = json.loads((path / MANIFEST).read_text("utf-8"))
    except FileNotFoundError as error:
        raise PackError(
            f"{path} is not a model pack: it has no {MANIFEST}. "
            "Build one with `python -m model_pack build --checkpoint DIR --out DIR`."
        ) from error
    except (OSError, ValueError) as error:
        raise PackError(f"{path / MANIFEST} cannot be read: {error}") from error
    version = manifest.get("format_version") if isinstance(manifest, dict) else None
    if version != FORMAT_VERSION:
        raise PackError(
            f"{path} has pack format version {version}; this engine reads version {FORMAT_VERSION}. "
            "Rebuild the pack with the model_pack of this release."
        )
    if not isinstance(manifest.get("files"), dict):
        raise PackError(f"{path / MANIFEST} lists no files.")
    return manifest


def _check_size(path: Path, recorded: dict[str, Any]) -> None:
    try:
        size = path.stat().st_size
    except OSError as error:
        raise _unreadable(path, error) from error
    if size != recorded["size"]:
        raise PackError(f"{path} has {size} bytes, the manifest says {recorded['size']}: copy the pack again.")


def _check_hashes(files: dict[Path, dict[str, Any]]) -> None:
    for path, recorded in files.items():
        _check_hash(path, recorded)


def _check_hash(path: Path, recorded: dict[str, Any]) -> None:
    digest = hashlib.sha256()
    try:
        if recorded["size"] < _WEIGHTS_BYTES:
            digest.update(path.read_bytes())
        else:
            _update_from_mapped(digest, path)
    except OSError as error:
        raise _unreadable(path, error) from error
    if digest.hexdigest() != recorded["sha256"]:
        raise PackError(f"{path} does not have the sha256 in the manifest: it was changed after the pack was built.")


def _update_from_mapped(digest: hashlib._Hash, path: Path) -> None:
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as content:
        for start in range(0, len(content), _CHUNK_BYTES):
            with memoryview(content)[start : start + _CHUNK_BYTES] as chunk:
                digest.update(chunk)
            content.madvise(mmap.MADV_DONTNEED)  # or the whole file would count as this process's memory


def _unreadable(path: Path, error: OSError) -> PackError:
    return PackError(f"{path} is in the manifest but cannot be read: {error.strerror}.")


def _language(entry: dict[str, Any]) -> Language:
    return Language(entry["code"], entry["name"], tuple(entry["aliases"]), entry["token"])


def _generation(entry: dict[str, Any]) -> Generation:
    return Generation(**{**entry, "banned_token_ids": tuple(entry["banned_token_ids"])})


def _tensors(entry: dict[str, Any]) -> Tensors:
    return Tensors(tuple(entry["inputs"]), tuple(entry["outputs"]))
