"""Plans that run: threads of actors, the bus between them, what they did.

thread.py: a thread of actors. part.py: those of one process. ray_cluster.py: other processes. runtime.py: a run.
report.py: what each actor did and waited for.
"""
