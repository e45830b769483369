"""The layout `jobs`: a run as a Harbor job, with a directory for each trial.

`job` makes the files, `place` puts them below an artifacts directory, `live` keeps them up to date
while a run goes on; `names` and `resolution` are shared with the analysis.
"""
