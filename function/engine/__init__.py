"""Text in, text out: model pack, tokenizer, sessions, greedy search. Knows nothing of AWS."""

import os

# onnxruntime's wheels (1.32.0) report to their maker: on import they start a thread, leave files in the home
# folder and send what they collected. Nothing leaves this function, so it is told not to before it is imported.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
