"""Memory over thousands of requests of mixed lengths, in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.paths import ROOT, held_out

REQUESTS = int(os.environ.get("HOSTILE_REQUESTS", "5000"))
WARM_UP = 500

PROGRAM = """
import json, random, sys
from function.http_handler import handler

def resident():
    status = dict(line.split(":", 1) for line in open("/proc/self/status"))
    return int(status["VmRSS"].split()[0])

sentences, requests, warm_up = json.load(sys.stdin)
source = random.Random(1)
sizes = []
for number in range(requests):
    # ONNX Runtime keeps the memory of the largest batches it has seen side by side, so the largest come early.
    texts = 8 if number < 100 else source.choice([1, 1, 1, 3, 8])
    lengths = [40] if number < 100 else [1, 1, 2, 4]
    q = [" ".join(source.choices(sentences, k=source.choice(lengths)))[:600] for _ in range(texts)]
    fields = {"q": q, "source": "en", "target": "zh"}
    event = {"httpMethod": "POST", "path": "/translate", "body": json.dumps(fields)}
    assert handler(event, None)["statusCode"] == 200
    if number >= warm_up - 1:
        sizes.append(resident())
print(json.dumps([sizes[0], max(sizes)]))
"""


def test_resident_memory_grows_by_less_than_three_percent(int8_pack: Path) -> None:
    sentences = [row["en"] for row in held_out("test_tatoeba")]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        input=json.dumps([sentences, REQUESTS, WARM_UP]),
        cwd=ROOT,
        env={**os.environ, "MARIAN_PACK": str(int8_pack), "MALLOC_ARENA_MAX": "1"},  # as template.yaml has it
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )

    after_warm_up, highest = json.loads(done.stdout)

    print(f"{after_warm_up / 1024:.1f} MB after {WARM_UP} requests, {highest / 1024:.1f} MB at the most in {REQUESTS}")
    assert highest < after_warm_up * 1.03
