"""The layout `jobs`: a run as a Harbor job, with a directory for each trial."""
