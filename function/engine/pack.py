"""A model pack on disk: its manifest, and the proof that its files are the ones it was built with."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FORMAT_VERSION = 2
MANIFEST = "manifest.json"
_CHUNK_BYTES = 1 << 20


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
    """A verified pack. `open` is the only way in."""

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

    @classmethod
    def open(cls, path: str | Path) -> ModelPack:
        """Read the manifest of the pack in folder `path` and check every file against it.

        Raises:
            PackError: no manifest, another format version, a missing or altered file,
                or a manifest that lacks a number this engine needs.
        """
        path = Path(path)
        manifest = _read_manifest(path)
        for name, recorded in manifest["files"].items():
            _check_file(path / name, recorded)
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


def _check_file(path: Path, recorded: dict[str, Any]) -> None:
    try:
        size = path.stat().st_size
        if size != recorded["size"]:
            raise PackError(f"{path} has {size} bytes, the manifest says {recorded['size']}: copy the pack again.")
        digest = hashlib.sha256()
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK_BYTES):
                digest.update(chunk)
    except OSError as error:
        raise PackError(f"{path} is in the manifest but cannot be read: {error.strerror}.") from error
    if digest.hexdigest() != recorded["sha256"]:
        raise PackError(f"{path} does not have the sha256 in the manifest: it was changed after the pack was built.")


def _language(entry: dict[str, Any]) -> Language:
    return Language(entry["code"], entry["name"], tuple(entry["aliases"]), entry["token"])


def _generation(entry: dict[str, Any]) -> Generation:
    return Generation(**{**entry, "banned_token_ids": tuple(entry["banned_token_ids"])})


def _tensors(entry: dict[str, Any]) -> Tensors:
    return Tensors(tuple(entry["inputs"]), tuple(entry["outputs"]))
