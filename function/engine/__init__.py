"""Text in, text out: model pack, tokenizer, sessions, greedy search. Knows nothing of AWS."""
