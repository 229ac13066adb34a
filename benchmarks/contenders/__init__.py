"""The forms in which each library is measured: its best for the job, with results that can be checked."""
