"""The device room: kernels and the capture built from them, and what is needed to compare variants byte by byte.

Importing it imports neither Triton nor a driver; building a capture needs Triton, replaying one a device.
"""
