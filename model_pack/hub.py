"""Speaks to a Hugging Face hub, or a mirror of one: what a model has, and the bytes of its files."""

from __future__ import annotations

import os
import re
import time
from dataclasses import dataclass
from pathlib import Path

import httpx2

from model_pack.errors import ModelPackError

try:
    from huggingface_hub import HfApi, ModelInfo, constants, hf_hub_url
    from huggingface_hub.errors import (
        GatedRepoError,
        HfHubHTTPError,
        HFValidationError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )
    from huggingface_hub.file_download import http_get
    from huggingface_hub.utils import build_hf_headers  # type: ignore[attr-defined]  # documented there
except ValueError as error:  # it reads the environment when it is imported
    raise ModelPackError(f"HF_ENDPOINT, or another variable whose name begins with HF_, is wrong: {error}") from error

_REQUIRED = ("config.json", "vocab.json", "source.spm", "target.spm")
_OPTIONAL = ("generation_config.json", "tokenizer_config.json", "README.md")
_WEIGHTS = ("model.safetensors", "pytorch_model.bin")  # the first that a model has
FILES = (*_REQUIRED, *_OPTIONAL, *_WEIGHTS)

# Seconds, for each address of the hub in turn, and large hubs have four and more.
_CONNECT_TIMEOUT = 4
_TRANSFERS = 3

_BY_HAND = "copy the checkpoint's files into a folder yourself and build with that folder as --checkpoint"

# Both are read when they are needed. Telemetry asks a question of its own before the first one, and of a
# transfer that breaks off, the last chunk is lost: 10 MB unless it is told otherwise.
constants.HF_HUB_DISABLE_TELEMETRY = True
constants.DOWNLOAD_CHUNK_SIZE = 1 << 20


@dataclass(frozen=True)
class Promise:
    """What the hub says of a file before it is fetched."""

    size: int | None
    sha256: str | None  # hubs know it of large files alone


@dataclass(frozen=True)
class Source:
    """A model at a commit, on a hub, and those of its files that are needed."""

    model_id: str
    endpoint: str
    commit: str
    files: dict[str, Promise]

    @property
    def hub(self) -> str:
        return shown(self.endpoint)


def endpoint_of_environment() -> str:
    """The address of the hub that HF_ENDPOINT names, or of the public one."""
    endpoint = (os.environ.get("HF_ENDPOINT") or "https://huggingface.co").rstrip("/")
    if not re.match(r"https?://[^/]", endpoint):
        raise ModelPackError(f"HF_ENDPOINT is {endpoint!r}: it must begin with https:// or http://.")
    return endpoint


def shown(endpoint: str) -> str:
    """The endpoint without the name and password that may be in it."""
    return re.sub(r"//[^/]*@", "//", endpoint)


def look_up(model_id: str, revision: str, endpoint: str) -> Source:
    """Find out which commit the revision is, and what the hub says of the files that are needed.

    Raises:
        ModelPackError: the hub cannot be reached, refuses, has no such model or revision, or a file is missing.
    """
    hub = shown(endpoint)
    info = _model_info(model_id, revision, endpoint)
    # A hub could have any name here, and a folder gets it.
    if not re.fullmatch(r"\w+", info.sha or ""):
        raise ModelPackError(f"{hub} names no commit for {revision} of {model_id}: set HF_ENDPOINT to another.")
    if re.fullmatch("[0-9a-f]{40}", revision) and info.sha != revision:
        raise ModelPackError(f"{hub} gives commit {info.sha} of {model_id} for {revision}: set HF_ENDPOINT to another.")
    promises = {
        sibling.rfilename: (
            Promise(sibling.lfs.size, sibling.lfs.sha256) if sibling.lfs else Promise(sibling.size, None)
        )
        for sibling in info.siblings or []
    }
    missing = [name for name in _REQUIRED if name not in promises]
    weights = [name for name in _WEIGHTS if name in promises]
    if not weights:
        missing.append(" or ".join(_WEIGHTS))
    if missing:
        raise ModelPackError(
            f"{model_id} at {revision} on {hub} lacks {', '.join(missing)}: it is no whole MarianMT checkpoint."
        )
    names = [*_REQUIRED, *(name for name in _OPTIONAL if name in promises), weights[0]]
    return Source(model_id, endpoint, str(info.sha), {name: promises[name] for name in names})


def transfer(source: Source, name: str, part: Path) -> None:
    """Bring a file of the source into `part`, going on after the bytes that an earlier call has left there.

    Raises:
        ModelPackError: the hub refuses, or the transfer broke off.
        OSError: `part` cannot be written.
    """
    size = source.files[name].size
    if part.exists() and (size is None or part.stat().st_size > size):
        part.unlink()
    url = hf_hub_url(source.model_id, name, revision=source.commit, endpoint=source.endpoint)
    # A transfer that is compressed on the way cannot be gone on with.
    headers = build_hf_headers(headers={"Accept-Encoding": "identity"})
    for attempt in range(1, _TRANSFERS + 1):
        try:
            with part.open("ab") as file:
                if file.tell() != size:
                    http_get(url, file, resume_size=file.tell(), headers=headers, displayed_filename=name)
            return
        except HfHubHTTPError as error:
            raise _refusal(error, f"{name} of {source.model_id}", source.commit, source.hub) from error
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            # After other failures, http_get has tried again by itself.
            if attempt < _TRANSFERS and isinstance(error, httpx2.ReadError):
                time.sleep(1)
                continue
            raise ModelPackError(
                f"the transfer of {name} from {source.hub} broke off ({_reason(error)}): run the same command again, "
                f"it goes on where it stopped. If it breaks off again, set HF_ENDPOINT to a mirror, or {_BY_HAND}."
            ) from error


def _model_info(model_id: str, revision: str, endpoint: str) -> ModelInfo:
    # The hub is asked once: who waits for a hub that is out of reach should learn so soon.
    timeout = httpx2.Timeout(constants.HF_HUB_ETAG_TIMEOUT, connect=_CONNECT_TIMEOUT)
    hub = shown(endpoint)
    try:
        return HfApi(endpoint=endpoint).model_info(
            model_id,
            revision=revision,
            files_metadata=True,
            timeout=timeout,  # type: ignore[arg-type]  # httpx2 gets it as it is
        )
    except HFValidationError as error:
        raise ModelPackError(f"{model_id!r} is not the name of a model on a hub, such as owner/model.") from error
    except HfHubHTTPError as error:
        raise _refusal(error, model_id, revision, hub) from error
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
        raise ModelPackError(
            f"{hub} cannot be reached ({_reason(error)}). Set HF_ENDPOINT to a mirror that can, or {_BY_HAND}."
        ) from error
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ModelPackError(f"{hub} does not answer as a hub does: check HF_ENDPOINT, or {_BY_HAND}.") from error


def _refusal(error: HfHubHTTPError, what: str, revision: str, hub: str) -> ModelPackError:
    status = error.response.status_code
    if isinstance(error, GatedRepoError):
        return ModelPackError(
            f"{hub} refuses {what}, which is gated ({status}): "
            "ask for access on its page there, and set HF_TOKEN to an access token of yours."
        )
    if status in (401, 403):
        return ModelPackError(
            f"{hub} refuses {what} ({status}): there is no such model, or it is private or gated. "
            "Check the name, and set HF_TOKEN to an access token that may read it."
        )
    if isinstance(error, RevisionNotFoundError):
        return ModelPackError(f"{hub} has no revision {revision} of {what}: --revision takes a branch, tag or commit.")
    if isinstance(error, RepositoryNotFoundError):
        return ModelPackError(f"{hub} has no model {what}: check the name.")
    if status == 404:
        return ModelPackError(f"{hub} has no {what} at revision {revision}: check both, or set HF_ENDPOINT to another.")
    return ModelPackError(
        f"{hub} answers {status} when asked for {what}: try again later, set HF_ENDPOINT to a mirror, or {_BY_HAND}."
    )


def _reason(error: Exception) -> str:
    """The first line of what the library says."""
    return (str(error).splitlines() or [type(error).__name__])[0]
