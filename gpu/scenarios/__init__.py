"""Scenarios: a small decoder whose every kernel launch goes launch -> select -> cubin, run in ways that must agree.

Drafted against plain, resumed against fresh, concurrent (and as a CUDA graph) against solo; each with a complete
capture and with one that never saw a 1, so that the fallback serves.
"""
