"""What the events mean: requests and records in, responses and results out."""
