"""Which node was slow: joins a run's results with the logs of the Swift that served them."""
