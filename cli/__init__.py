"""The command `foldproof`: one thin module a verb. May import every room."""
