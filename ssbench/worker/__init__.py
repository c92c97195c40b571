"""The worker process: jobs in, results out."""
