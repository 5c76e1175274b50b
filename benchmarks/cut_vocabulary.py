"""The same checkpoint with fewer vocabulary rows, for systems that cannot leave rows out themselves."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save_file

from model_pack.checkpoint import SAFETENSORS_FILE


def cut_vocabulary(checkpoint: Path, out: Path, rows: int) -> None:
    """Write the checkpoint with the first `rows - 1` ids of its vocabulary, and pad as the last one.

    Which pieces go is of no account: it is for checkpoints with random weights, where only sizes matter.
    """
    out.mkdir()
    kept, pad = rows - 1, rows - 1
    for name in ("source.spm", "target.spm", "tokenizer_config.json"):
        shutil.copyfile(checkpoint / name, out / name)
    vocabulary = json.loads((checkpoint / "vocab.json").read_text("utf-8"))
    cut = {piece: id_ for piece, id_ in vocabulary.items() if id_ < kept} | {"<pad>": pad}
    (out / "vocab.json").write_text(json.dumps(cut, ensure_ascii=False), "utf-8")

    config = json.loads((checkpoint / "config.json").read_text("utf-8"))
    config |= {"vocab_size": rows, "decoder_vocab_size": rows}
    config |= {"pad_token_id": pad, "decoder_start_token_id": pad, "bad_words_ids": [[pad]]}
    (out / "config.json").write_text(json.dumps(config, indent=1) + "\n", "utf-8")

    weights = load_file(checkpoint / SAFETENSORS_FILE)
    embedding, bias = weights["model.shared.weight"], weights["final_logits_bias"]
    weights["model.shared.weight"] = np.concatenate([embedding[:kept], np.zeros_like(embedding[:1])])
    weights["final_logits_bias"] = np.concatenate([bias[:, :kept], np.zeros_like(bias[:, :1])], axis=1)
    save_file(weights, out / SAFETENSORS_FILE)
