"""An arm64 Debian with Python 3.13 in a folder, for qemu-user to run programs of.

Made by apt with a state of its own: it needs no rights and leaves the machine's own packages alone.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

_SUITE = "trixie"  # its Python is 3.13, as Lambda's
_PACKAGES = ("python3.13", "libstdc++6")
_KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")

_APT_CONFIGURATION = """
Dir::State "{apt}/state";
Dir::State::status "{apt}/status";
Dir::Cache "{apt}/cache";
Dir::Log "{apt}";
Dir::Etc::sourcelist "{apt}/sources.list";
Dir::Etc::sourceparts "-";
APT::Architecture "arm64";
APT::Architectures {{ "arm64"; }};
APT::Sandbox::User "";
Acquire::Languages "none";
"""

# Programs that look for the processor's abilities here would find the real processor's.
_PROCESSOR = """\
processor	: {number}
BogoMIPS	: 243.75
Features	: fp asimd evtstrm aes pmull sha1 sha2 crc32 atomics fphp asimdhp cpuid asimdrdm lrcpc dcpop asimddp
CPU implementer	: 0x41
CPU architecture: 8
CPU variant	: 0x3
CPU part	: 0xd0c
CPU revision	: 1

"""


class Unavailable(Exception):
    """This machine lacks what making or running the root needs; the message says what."""


def emulated_python(root: Path) -> list[str]:
    """The command that starts the root's Python on an emulated Neoverse N1, the processor of Graviton 2.

    The root is made if it is not there yet.

    Raises:
        Unavailable: no qemu-user, or as `make_root`.
    """
    qemu = shutil.which("qemu-aarch64-static") or shutil.which("qemu-aarch64")
    if qemu is None:
        raise Unavailable("qemu-user is not installed")
    if not root.is_dir():
        make_root(root)
    return [qemu, "-cpu", "neoverse-n1", "-L", str(root), str(root / "usr" / "bin" / "python3.13")]


def make_root(root: Path) -> None:
    """Fetch Debian's packages and unpack them into folder `root`, which appears only when it is complete.

    Raises:
        Unavailable: no apt, or none that knows a mirror of Debian.
        subprocess.CalledProcessError: apt could not fetch a package; it has said why.
    """
    missing = [tool for tool in ("apt-get", "dpkg-deb") if shutil.which(tool) is None]
    if missing or not _KEYRING.is_file():
        raise Unavailable(f"{missing[0] if missing else _KEYRING} is not installed")
    root.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{root.name}.", dir=root.parent) as workspace:
        apt, unpacked = Path(workspace, "apt"), Path(workspace, "root")
        for folder in (apt / "state" / "lists" / "partial", apt / "cache" / "archives" / "partial", unpacked):
            folder.mkdir(parents=True)
        (apt / "status").touch()
        (apt / "sources.list").write_text(f"deb [signed-by={_KEYRING}] {_mirror()} {_SUITE} main\n")
        (apt / "apt.conf").write_text(_APT_CONFIGURATION.format(apt=apt))
        environment = {**os.environ, "APT_CONFIG": str(apt / "apt.conf")}
        install = ["apt-get", "-qq", "install", "--yes", "--download-only", "--no-install-recommends", *_PACKAGES]
        for command in (["apt-get", "-qq", "update"], install):
            subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True)
        (unpacked / "usr" / "lib").mkdir(parents=True)
        (unpacked / "lib").symlink_to("usr/lib")  # the package that makes it is none that Python needs
        for package in sorted((apt / "cache" / "archives").glob("*.deb")):
            subprocess.run(["dpkg-deb", "--extract", str(package), str(unpacked)], check=True)
        (unpacked / "proc").mkdir()
        (unpacked / "proc" / "cpuinfo").write_text("".join(_PROCESSOR.format(number=number) for number in range(2)))
        unpacked.rename(root)


def _mirror() -> str:
    """The mirror of Debian that this machine's own apt is set up with."""
    command = ["apt-get", "indextargets", "--format", "$(REPO_URI)"]
    listed = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.split()
    for uri in listed:
        if uri.rstrip("/").endswith("/debian"):
            return uri
    raise Unavailable("this machine's apt knows no mirror of Debian")
