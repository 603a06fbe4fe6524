"""Evidence records and their renderers. May import `impl`, for its types and error texts alone."""
