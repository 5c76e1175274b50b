"""The function where it can reach nothing and write nothing: no network, a read-only file system, no home."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.events import http_api_event
from tests.paths import ROOT

PROGRAM = """
import json, os, socket, sys
from function.http_handler import handler
response = handler(json.loads(sys.argv[1]), None)
writable = []
for folder in ("/tmp", os.getcwd()):
    try:
        open(f"{folder}/probe", "w").close()
        writable.append(folder)
    except OSError:
        pass
networks = [name for _, name in socket.if_nameindex() if name != "lo"]
print(json.dumps({"response": response, "writable": writable, "networks": networks}))
"""
# In namespaces of its own the file system can be made read-only and the network be left out.
ISOLATED = """
mount --make-rprivate / && mount -o bind / /mnt && mount -o remount,bind,ro /mnt &&
mount -t proc proc /mnt/proc && mount --bind -o ro /sys /mnt/sys && mount --bind /dev /mnt/dev &&
exec chroot /mnt env -i HOME=/nowhere MARIAN_PACK="$1" sh -c 'cd "$0" && exec "$@"' "$2" "$3" -c "$4" "$5"
"""


def test_a_translation_needs_no_network_and_no_place_to_write(int8_pack: Path) -> None:
    event = http_api_event("POST", "/translate", {"q": "Good morning.", "source": "en", "target": "zh"})
    arguments = [str(int8_pack), str(ROOT), sys.executable, PROGRAM, json.dumps(event)]
    if shutil.which("unshare") is None:
        pytest.skip("unshare is not installed")
    command = ["unshare", "--net", "--mount", "sh", "-c", ISOLATED, "sh", *arguments]
    probe = subprocess.run(["unshare", "--net", "--mount", "true"], check=False, capture_output=True)
    if probe.returncode != 0:
        pytest.skip("this user may not make namespaces")

    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["response"]["statusCode"] == 200
    assert result["writable"] == []
    assert result["networks"] == []
    assert done.stderr == ""
