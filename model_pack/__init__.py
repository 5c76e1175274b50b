"""Builds model packs: Hugging Face MarianMT checkpoint -> verified ONNX model pack."""
