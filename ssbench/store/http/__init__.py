"""An HTTP client that keeps its connections and times each step of a request: for any store over HTTP."""
