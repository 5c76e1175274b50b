"""A Docker engine to run the functions in, and the image that stands in for AWS's where that cannot be pulled.

An engine that runs already is used as it is, with AWS's own image. Otherwise a private one is started, which keeps
its images under build/, changes no firewall rule and is gone afterwards. It takes root, and two packages:
docker.io and busybox-static on Debian and Ubuntu.
"""

from __future__ import annotations

import hashlib
import ipaddress
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from layer.bytecode import find_python
from layer.errors import LayerError
from local.emulator import ARCHITECTURE, EXECUTABLE, EmulatorError
from local.processes import answers_in_time, running

_FOLDER = Path(__file__).parent
_BUILD = _FOLDER.parent / "build" / "docker"
_SCRIPT = _FOLDER / "base-image.sh"

_BRIDGE = Path("/sys/class/net/docker0")
_START_SECONDS = 20.0
_INSTALL = "apt-get install --no-install-recommends docker.io busybox-static"

# The names that SAM and the AWS emulator know AWS's image by.
_REPOSITORY = "public.ecr.aws/lambda/python"
_TAGS = ("3.13", f"3.13-{ARCHITECTURE}")

_PATHS = {
    "LANG": "C.UTF-8",
    "PATH": "/var/lang/bin:/usr/local/bin:/bin:/opt/bin",
    "LD_LIBRARY_PATH": "/var/lang/lib:/var/runtime:/var/runtime/lib:/var/task:/var/task/lib:/opt/lib",
    "LAMBDA_TASK_ROOT": "/var/task",
    "LAMBDA_RUNTIME_DIR": "/var/runtime",
    "PYTHONPATH": "/var/task:/opt/python/lib/python3.13/site-packages:/opt/python:/var/runtime",
}


class DockerError(Exception):
    """There is no Docker engine, or no image for it."""


@dataclass(frozen=True)
class Engine:
    """A Docker engine that runs."""

    host: str  # the form of DOCKER_HOST
    has_image: bool  # for SAM; otherwise it is to be pulled
    gateway: str | None  # address at which its containers reach this machine, if it is one of this machine's

    @property
    def environment(self) -> dict[str, str]:
        """What tells Docker's clients of it."""
        return {"DOCKER_HOST": self.host}


@contextmanager
def docker_engine() -> Iterator[Engine]:
    """The engine that runs already, or a private one with the stand-in image.

    Raises:
        DockerError: neither is to be had.
        EmulatorError: the emulator, which the image needs, is not installed.
    """
    if shutil.which("docker") is None:
        raise DockerError(f"the docker command is not installed: {_INSTALL}")
    host = os.environ.get("DOCKER_HOST") or "unix:///var/run/docker.sock"
    if _answers(host):
        yield Engine(host, _has_image(host), _gateway(host))
        return
    if os.environ.get("DOCKER_HOST"):
        raise DockerError(f"no Docker engine answers at DOCKER_HOST, {host}.")
    with _private_engine() as host:
        _make_image(host)
        yield Engine(host, _has_image(host), _gateway(host))


@contextmanager
def _private_engine() -> Iterator[str]:
    if missing := [name for name in ("dockerd", "busybox") if shutil.which(name) is None]:
        raise DockerError(
            f"no Docker engine runs, and {' and '.join(missing)} to start one with cannot be found: {_INSTALL}"
        )
    if os.geteuid() != 0:
        raise DockerError("no Docker engine runs, and only root can start one: start one, or set DOCKER_HOST.")
    bridge_was_there = _BRIDGE.exists()
    log = _BUILD / "dockerd.log"
    # Sockets have short paths, so they lie outside of build/.
    with tempfile.TemporaryDirectory(prefix="marian-docker-", ignore_cleanup_errors=True) as folder:
        host = f"unix://{folder}/docker.sock"
        command = [
            *("dockerd", "--host", host, "--pidfile", f"{folder}/pid", "--exec-root", f"{folder}/exec"),
            *("--data-root", str(_BUILD / "data"), "--iptables=false", "--ip6tables=false", "--log-level", "warn"),
        ]
        try:
            with running(command, environment=dict(os.environ), folder=Path(folder), log=log) as process:
                if not answers_in_time(process, lambda: _answers(host), _START_SECONDS):
                    raise DockerError(f"dockerd did not start (exit status {process.poll()}); {log} has the reason.")
                yield host
        finally:
            if not bridge_was_there:
                subprocess.run(["ip", "link", "delete", _BRIDGE.name], check=False, capture_output=True)


def _make_image(host: str) -> None:
    """Build the stand-in, unless the engine has it from an earlier run."""
    if not EXECUTABLE.is_file():
        raise EmulatorError(f"{EXECUTABLE} is missing: `make emulator` installs it.")
    try:
        python = find_python()
    except LayerError as error:
        raise DockerError("the image needs a Python 3.13 on this machine: install one, or set PYTHON313.") from error
    key = _image_key(python)
    first, *others = (f"{_REPOSITORY}:{tag}" for tag in _TAGS)
    label = ["image", "inspect", "--format", '{{index .Config.Labels "marian-lambda"}}']
    if all(_docker(host, *label, image).stdout.strip() == key for image in (first, *others)):
        return
    print("Building the image that stands in for AWS's", file=sys.stderr)
    with tempfile.TemporaryFile(dir=_BUILD) as tar:
        done = subprocess.run([_SCRIPT, python, EXECUTABLE], stdout=tar, stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode != 0:
            raise DockerError(f"{_SCRIPT.name} failed:\n{done.stderr}")
        tar.seek(0)
        changes = [
            *(f"ENV {name}={value}" for name, value in _PATHS.items()),
            f"LABEL marian-lambda={key}",
            "WORKDIR /var/task",
            'ENTRYPOINT ["/lambda-entrypoint.sh"]',
        ]
        options = [option for change in changes for option in ("--change", change)]
        _checked(_docker(host, "import", *options, "-", first, stdin=tar))
    for other in others:
        _checked(_docker(host, "tag", first, other))
    _docker(host, "image", "prune", "--force")  # the one before


def _image_key(python: Path) -> str:
    """Changes with whatever the image is made from."""
    version = subprocess.run([python, "-VV"], stdout=subprocess.PIPE, check=True).stdout
    files = [_SCRIPT, _FOLDER / "base-image-requirements.txt", EXECUTABLE]
    contents = [version, Path(__file__).read_bytes(), *(file.read_bytes() for file in files)]
    return hashlib.sha256(b"".join(hashlib.sha256(content).digest() for content in contents)).hexdigest()


def _has_image(host: str) -> bool:
    return _docker(host, "image", "inspect", f"{_REPOSITORY}:{_TAGS[-1]}").returncode == 0


def _gateway(host: str) -> str | None:
    done = _docker(host, "network", "inspect", "bridge", "--format", "{{range .IPAM.Config}}{{.Subnet}} {{end}}")
    for subnet in map(ipaddress.ip_network, done.stdout.split()):
        address = str(next(subnet.hosts()))
        with suppress(OSError), socket.create_server((address, 0)):
            return address
    return None  # the engine runs in a virtual machine: its containers have other ways to this one


def _answers(host: str) -> bool:
    return _docker(host, "version").returncode == 0


def _docker(host: str, *arguments: str, stdin: IO[bytes] | None = None) -> subprocess.CompletedProcess[str]:
    command = ["docker", "--host", host, *arguments]
    return subprocess.run(command, stdin=stdin or subprocess.DEVNULL, capture_output=True, text=True, check=False)


def _checked(done: subprocess.CompletedProcess[str]) -> None:
    if done.returncode != 0:
        raise DockerError(f"`{' '.join(done.args[:4])} ...` failed:\n{done.stderr}")
