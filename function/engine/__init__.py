"""Text in, text out: model pack, tokenizer, sessions, greedy search. Knows nothing of AWS."""

import os

# onnxruntime's wheels (1.32.0) carry telemetry: on import they start a thread for it and leave an identifier and a
# database to be uploaded in the home folder. Nothing is to leave this function, so it is switched off before that.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
# numpy's BLAS, which multiplies nothing here, would start a thread for each processor as numpy is imported, and these
# turn in circles: with them beside the check of the pack's weights, the import took 125 ms instead of 70.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
