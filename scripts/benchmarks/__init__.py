"""The parts of bench.py: each module has `run(options) -> report` and `table(report) -> lines of Markdown`."""
