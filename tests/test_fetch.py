"""Fetching checkpoints from a hub: what comes, what is locked, and what is said when it cannot be had."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from model_pack.checkpoint import LOCK_FILE
from tests.checkpoints import build, write_checkpoint
from tests.hub_server import MODEL, Cut, Hub, hub_server
from tests.paths import ROOT, STARTER, sha256

FIRST, SECOND = "1" * 40, "2" * 40
WEIGHTS = "model.safetensors"
FILES = {"config.json", "vocab.json", "source.spm", "target.spm", "tokenizer_config.json", "README.md", WEIGHTS}

FETCH = [sys.executable, "-m", "model_pack", "fetch"]


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of a model as they lie on a hub, with weights of 3.5 MB and files that no pack needs."""
    folder = write_checkpoint(tmp_path_factory.mktemp("hub") / "repository", STARTER, d_model=64)
    (folder / "README.md").write_text("---\nlicense: cc-by-4.0\n---\nA model.\n")
    (folder / "pytorch_model.bin").write_bytes(b"the same weights in another format")
    (folder / "tf_model.h5").write_bytes(b"and in another")
    return folder


@pytest.fixture
def hub(repository: Path, tmp_path: Path) -> Iterator[Hub]:
    """A hub of that model with one commit, which may be changed."""
    with hub_server() as hub:
        hub.commits[FIRST] = shutil.copytree(repository, tmp_path / FIRST)
        hub.branches["main"] = FIRST
        yield hub


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the checkpoint is fetched to."""
    return tmp_path / "checkpoints" / "tiny"


def add_commit(hub: Hub, commit: str, change: Callable[[Path], object]) -> None:
    """A commit after FIRST, to which main moves."""
    hub.commits[commit] = shutil.copytree(hub.commits[FIRST], hub.commits[FIRST].with_name(commit))
    change(hub.commits[commit])
    hub.branches["main"] = commit


def environment(endpoint: str | None, **more: str) -> dict[str, str]:
    """Ours, without what it says of other hubs."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}
    endpoints = {} if endpoint is None else {"HF_ENDPOINT": endpoint}
    return {**kept, "NO_PROXY": "127.0.0.1,localhost", "HF_HOME": str(ROOT / "no-such-folder"), **endpoints, **more}


def fetch(
    endpoint: str | None, folder: Path, *arguments: str, model: str = MODEL, **variables: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*FETCH, model, "--local-dir", str(folder), *arguments],
        cwd=ROOT,
        env=environment(endpoint, **variables),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def assert_done(done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 0, done.stderr


def assert_refused(done: subprocess.CompletedProcess[str], *words: str) -> None:
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    last_line = done.stderr.splitlines()[-1]
    assert last_line.startswith("model_pack fetch: ")
    for word in words:
        assert word in last_line


def contents(folder: Path) -> dict[str, bytes]:
    """Name and bytes of every file in the folder, and of its subfolders nothing."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def test_a_fetched_checkpoint_can_be_built(hub: Hub, folder: Path, tmp_path: Path) -> None:
    assert_done(fetch(hub.url, folder))

    assert {path.name for path in folder.iterdir()} == FILES | {LOCK_FILE}
    assert all((folder / name).read_bytes() == (hub.commits[FIRST] / name).read_bytes() for name in FILES)
    assert json.loads((folder / LOCK_FILE).read_text()) == {
        "model_id": MODEL,
        "endpoint": hub.url,
        "revision": "main",
        "commit": FIRST,
        "files": {name: {"size": (folder / name).stat().st_size, "sha256": sha256(folder / name)} for name in FILES},
    }
    assert_done(build(folder, tmp_path / "pack"))


def test_the_hub_is_asked_for_nothing_else_and_the_token_stays_with_it(hub: Hub, folder: Path) -> None:
    hub.token = "hf_secret"

    assert_done(fetch(hub.url + "/", folder, HF_TOKEN="hf_secret"))

    assert sorted(hub.transfers()) == sorted(FILES)
    assert {request.path for request in hub.requests} == {
        f"/api/models/{MODEL}/revision/main",
        *(f"/{MODEL}/resolve/{FIRST}/{name}" for name in FILES),
        *(f"/cdn/{FIRST}/{name}" for name in ("source.spm", "target.spm", WEIGHTS)),
    }
    for request in hub.requests:
        assert request.authorization == (None if request.path.startswith("/cdn/") else "Bearer hf_secret")


def test_a_second_fetch_transfers_nothing(hub: Hub, folder: Path) -> None:
    fetch(hub.url, folder)
    before = contents(folder)
    hub.requests.clear()

    assert_done(fetch(hub.url, folder))

    assert hub.transfers() == []
    assert contents(folder) == before


def test_only_what_has_changed_or_is_gone_is_fetched_again(hub: Hub, folder: Path) -> None:
    fetch(hub.url, folder)
    before = contents(folder)
    (folder / "config.json").write_text("{}")
    (folder / "source.spm").unlink()
    hub.requests.clear()

    assert_done(fetch(hub.url, folder))

    assert sorted(hub.transfers()) == ["config.json", "source.spm"]
    assert contents(folder) == before


def test_torch_weights_are_fetched_where_there_are_no_others(hub: Hub, folder: Path) -> None:
    (hub.commits[FIRST] / WEIGHTS).unlink()

    assert_done(fetch(hub.url, folder))

    assert set(contents(folder)) == FILES - {WEIGHTS} | {"pytorch_model.bin", LOCK_FILE}


def test_what_is_optional_may_be_missing(hub: Hub, folder: Path) -> None:
    (hub.commits[FIRST] / "README.md").unlink()
    (hub.commits[FIRST] / "tokenizer_config.json").unlink()
    (hub.commits[FIRST] / "generation_config.json").write_text("{}")

    assert_done(fetch(hub.url, folder))

    assert set(contents(folder)) == FILES - {"README.md", "tokenizer_config.json"} | {
        "generation_config.json",
        LOCK_FILE,
    }


@pytest.mark.parametrize("revision", [FIRST, "v1.0", "refs/pr/1"])
def test_a_revision_that_is_asked_for(hub: Hub, folder: Path, revision: str) -> None:
    add_commit(hub, SECOND, lambda commit: (commit / "README.md").write_text("Newer."))
    hub.branches |= {"v1.0": FIRST, "refs/pr/1": FIRST}

    assert_done(fetch(hub.url, folder, "--revision", revision))

    assert "license: cc-by-4.0" in (folder / "README.md").read_text()
    lock = json.loads((folder / LOCK_FILE).read_text())
    assert (lock["revision"], lock["commit"]) == (revision, FIRST)


def test_a_branch_that_has_moved_is_followed(hub: Hub, folder: Path) -> None:
    fetch(hub.url, folder)

    def change(commit: Path) -> None:
        (commit / "config.json").write_text("{}")
        (commit / "tokenizer_config.json").unlink()

    add_commit(hub, SECOND, change)
    hub.requests.clear()

    assert_done(fetch(hub.url, folder))

    assert set(contents(folder)) == FILES - {"tokenizer_config.json"} | {LOCK_FILE}
    assert (folder / "config.json").read_text() == "{}"
    lock = json.loads((folder / LOCK_FILE).read_text())
    assert lock["commit"] == SECOND
    assert lock["files"]["config.json"]["sha256"] == sha256(folder / "config.json")
    assert "config.json" in hub.transfers()
    assert WEIGHTS not in hub.transfers(), "the hub told that they have not changed"


def test_weights_of_the_other_format_do_not_stay(hub: Hub, folder: Path) -> None:
    fetch(hub.url, folder)
    add_commit(hub, SECOND, lambda commit: (commit / WEIGHTS).unlink())

    assert_done(fetch(hub.url, folder))

    assert set(contents(folder)) == FILES - {WEIGHTS} | {"pytorch_model.bin", LOCK_FILE}


def test_other_bytes_for_the_same_commit_are_refused(hub: Hub, folder: Path, tmp_path: Path) -> None:
    fetch(hub.url, folder)
    (folder / "config.json").unlink()
    before = contents(folder)
    hub.served["config.json"] = (hub.commits[FIRST] / "config.json").read_bytes().replace(b'"marian"', b'"barian"')
    (tmp_path / "tampered").write_bytes(hub.served["config.json"])

    done = fetch(hub.url, folder)

    locked = sha256(hub.commits[FIRST] / "config.json")
    assert_refused(done, "config.json", sha256(tmp_path / "tampered"), locked, LOCK_FILE, "HF_ENDPOINT")
    assert contents(folder) == before

    hub.served.clear()
    assert_done(fetch(hub.url, folder))
    assert sha256(folder / "config.json") == locked


def test_a_hub_that_tells_another_hash_for_the_same_commit_is_refused(hub: Hub, folder: Path) -> None:
    fetch(hub.url, folder)
    before = contents(folder)
    hub.promised[WEIGHTS] = {"sha256": "f" * 64}
    hub.requests.clear()

    assert_refused(fetch(hub.url, folder), WEIGHTS, "f" * 64, sha256(folder / WEIGHTS), LOCK_FILE)

    assert contents(folder) == before
    assert hub.transfers() == []


def test_bytes_with_another_hash_than_the_hub_tells_are_refused(hub: Hub, folder: Path) -> None:
    hub.promised[WEIGHTS] = {"sha256": "f" * 64}

    done = fetch(hub.url, folder)

    assert_refused(done, WEIGHTS, "f" * 64, sha256(hub.commits[FIRST] / WEIGHTS), "says itself")
    assert contents(folder) == {}

    hub.promised.clear()
    hub.requests.clear()
    assert_done(fetch(hub.url, folder))
    assert hub.transfers() == [WEIGHTS], "what had come in order is fetched again"


def test_another_size_than_the_hub_tells_is_refused(hub: Hub, folder: Path) -> None:
    size = (hub.commits[FIRST] / "vocab.json").stat().st_size
    hub.served["vocab.json"] = (hub.commits[FIRST] / "vocab.json").read_bytes()[:1000]

    assert_refused(fetch(hub.url, folder), "vocab.json", "1000 bytes", str(size))
    assert contents(folder) == {}


def test_a_broken_transfer_is_resumed(hub: Hub, folder: Path) -> None:
    hub.cuts[WEIGHTS] = [Cut(2_500_000, "close"), Cut(100, "reset")]

    assert_done(fetch(hub.url, folder))

    assert sha256(folder / WEIGHTS) == sha256(hub.commits[FIRST] / WEIGHTS)
    assert hub.ranges(WEIGHTS) == ["bytes=2097152-"]


def test_a_transfer_that_keeps_breaking_off(hub: Hub, folder: Path) -> None:
    hub.cuts[WEIGHTS] = [Cut(100, "reset")] * 3

    assert_refused(fetch(hub.url, folder), WEIGHTS, hub.url, "broke off", "run the same command again", "--checkpoint")

    assert contents(folder) == {}
    hub.requests.clear()
    assert_done(fetch(hub.url, folder))
    assert hub.transfers() == [WEIGHTS]


def test_a_killed_fetch_leaves_no_half_file_and_goes_on_in_the_next_run(hub: Hub, folder: Path) -> None:
    hub.cuts[WEIGHTS] = [Cut(2_500_000, "silence")]
    command = [*FETCH, MODEL, "--local-dir", str(folder)]
    process = subprocess.Popen(command, cwd=ROOT, env=environment(hub.url), stderr=subprocess.PIPE)
    assert hub.silent.wait(timeout=30)
    part = folder / ".fetch" / FIRST / f"{WEIGHTS}.part"
    until = time.monotonic() + 5
    while not (part.is_file() and part.stat().st_size >= 2_000_000) and time.monotonic() < until:
        time.sleep(0.01)
    process.kill()
    process.communicate()

    assert contents(folder) == {}
    hub.requests.clear()
    assert_done(fetch(hub.url, folder))
    assert hub.transfers() == [WEIGHTS]
    assert hub.ranges(WEIGHTS) == ["bytes=2097152-"]
    assert {path.name for path in folder.iterdir()} == FILES | {LOCK_FILE}


def test_what_an_older_commit_left_unfinished_is_not_gone_on_with(hub: Hub, folder: Path) -> None:
    (folder / ".fetch" / SECOND).mkdir(parents=True)
    (folder / ".fetch" / SECOND / f"{WEIGHTS}.part").write_bytes(b"the first bytes")

    assert_done(fetch(hub.url, folder))

    assert sha256(folder / WEIGHTS) == sha256(hub.commits[FIRST] / WEIGHTS)
    assert {path.name for path in folder.iterdir()} == FILES | {LOCK_FILE}


def private(hub: Hub) -> None:
    hub.token = "hf_secret"


def gated(hub: Hub) -> None:
    hub.token = "hf_secret"
    hub.gated = True


def without_a_vocabulary(hub: Hub) -> None:
    (hub.commits[FIRST] / "vocab.json").unlink()
    (hub.commits[FIRST] / "source.spm").unlink()


def without_weights(hub: Hub) -> None:
    (hub.commits[FIRST] / WEIGHTS).unlink()
    (hub.commits[FIRST] / "pytorch_model.bin").unlink()


def out_of_order(hub: Hub) -> None:
    hub.status = 503


def with_a_login_page(hub: Hub) -> None:
    hub.page = b"<html>Please log in to this network.</html>"


def with_a_commit_of_another_kind(hub: Hub) -> None:
    hub.commits["../../etc"] = hub.commits[FIRST]
    hub.branches["main"] = "../../etc"


def with_another_commit(hub: Hub) -> None:
    add_commit(hub, SECOND, lambda _: None)
    hub.branches[FIRST] = SECOND


REFUSALS: list[tuple[Callable[[Hub], None] | None, list[str], list[str]]] = [
    (private, [], [f"refuses {MODEL} (401)", "HF_TOKEN"]),
    (gated, [], [f"refuses {MODEL}, which is gated (403)", "HF_TOKEN"]),
    (None, ["--revision", "v9"], [f"has no revision v9 of {MODEL}"]),
    (without_a_vocabulary, [], [f"{MODEL} at main", "lacks vocab.json, source.spm:"]),
    (without_weights, [], ["lacks model.safetensors or pytorch_model.bin:"]),
    (out_of_order, [], ["answers 503", "HF_ENDPOINT", "--checkpoint"]),
    (with_a_login_page, [], ["does not answer as a hub does", "HF_ENDPOINT"]),
    (with_a_commit_of_another_kind, [], ["names no commit for main"]),
    (with_another_commit, ["--revision", FIRST], [f"gives commit {SECOND} of {MODEL} for {FIRST}"]),
]


@pytest.mark.parametrize(("change", "arguments", "words"), REFUSALS, ids=[words[0][:30] for _, _, words in REFUSALS])
def test_a_hub_that_refuses(
    hub: Hub, folder: Path, change: Callable[[Hub], None] | None, arguments: list[str], words: list[str]
) -> None:
    if change is not None:
        change(hub)

    assert_refused(fetch(hub.url, folder, *arguments), hub.url, *words)
    assert not folder.exists()


def test_a_model_that_is_not_there(hub: Hub, folder: Path) -> None:
    done = fetch(hub.url, folder, model="Helsinki-NLP/opus-mt-en-xx")

    assert_refused(done, f"{hub.url} has no model Helsinki-NLP/opus-mt-en-xx")
    assert not folder.exists()


def test_a_model_id_that_is_none(hub: Hub, folder: Path) -> None:
    assert_refused(fetch(hub.url, folder, model="a/b/c"), "'a/b/c' is not the name of a model")
    assert hub.requests == []


def test_a_file_that_is_listed_and_not_there(hub: Hub, folder: Path) -> None:
    hub.promised["generation_config.json"] = {}

    assert_refused(fetch(hub.url, folder), f"has no generation_config.json of {MODEL} at revision {FIRST}")
    assert contents(folder) == {}


def test_a_hub_out_of_reach(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        endpoint = f"http://127.0.0.1:{server.getsockname()[1]}"
    started = time.monotonic()

    done = fetch(endpoint, folder)

    assert_refused(done, f"{endpoint} cannot be reached (", "refused", "Set HF_ENDPOINT", "--checkpoint")
    assert time.monotonic() - started < 5
    assert not folder.exists()


def test_a_hub_that_says_nothing(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        endpoint = f"http://127.0.0.1:{server.getsockname()[1]}"

        done = fetch(endpoint, folder, HF_HUB_ETAG_TIMEOUT="1")

    assert_refused(done, f"{endpoint} cannot be reached (timed out)", "Set HF_ENDPOINT")


def test_offline_mode_is_respected(hub: Hub, folder: Path) -> None:
    assert_refused(fetch(hub.url, folder, HF_HUB_OFFLINE="1"), "cannot be reached", "HF_HUB_OFFLINE", "--checkpoint")
    assert hub.requests == []


@pytest.mark.parametrize("endpoint", ["hub.test", "http://[hub", "http://hub:port"])
def test_an_endpoint_that_is_no_address(folder: Path, endpoint: str) -> None:
    assert_refused(fetch(endpoint, folder), "HF_ENDPOINT")


def test_a_folder_with_files_that_were_not_fetched_is_left_alone(hub: Hub, folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("mine")

    assert_refused(fetch(hub.url, folder), f"{folder} holds config.json without a {LOCK_FILE}", "--local-dir")
    assert contents(folder) == {"config.json": b"mine"}


def test_a_folder_with_another_model_is_left_alone(hub: Hub, folder: Path) -> None:
    fetch(hub.url, folder)
    before = contents(folder)

    done = fetch(hub.url, folder, model="Helsinki-NLP/opus-mt-en-de")

    assert_refused(done, f"{folder} holds {MODEL}", "--local-dir", "Helsinki-NLP/opus-mt-en-de")
    assert contents(folder) == before


@pytest.mark.parametrize("content", ["{", '{"files": {"config.json": {"size": 1}}}'])
def test_a_damaged_lock_is_named(folder: Path, content: str) -> None:
    folder.mkdir(parents=True)
    (folder / LOCK_FILE).write_text(content)

    assert_refused(fetch(None, folder), f"{folder / LOCK_FILE} is damaged")


def test_a_file_in_the_place_of_the_folder(folder: Path) -> None:
    folder.parent.mkdir()
    folder.write_text("mine")

    assert_refused(fetch(None, folder), f"{folder} is not a folder")
    assert folder.read_text() == "mine"


def test_a_folder_that_cannot_be_made(hub: Hub, folder: Path) -> None:
    folder.parent.write_text("mine")

    assert_refused(fetch(hub.url, folder), f"cannot be kept in {folder}")
    assert hub.transfers() == []
