"""All that happens to text before the model reads it and after the model has written it. Knows no model."""
