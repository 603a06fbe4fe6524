"""Selectors under test, in any language: the protocol, the C interface, and the drivers that no selector can hang."""
