"""Plans of many runs: rules that say what to run next, what is kept of each run, and what follows."""
