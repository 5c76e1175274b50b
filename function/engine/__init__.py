"""Text in, text out: model pack, tokenizer, sessions, greedy search. Knows nothing of AWS."""

import os

# onnxruntime's wheels (1.32.0) carry telemetry: on import they start a thread for it and leave an identifier and a
# database to be uploaded in the home folder. Nothing is to leave this function, so it is switched off before that.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
