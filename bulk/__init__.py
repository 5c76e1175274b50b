"""The client of bulk translation: files into the queue, results out of the bucket."""
