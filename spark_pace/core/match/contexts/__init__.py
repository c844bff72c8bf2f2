"""The parameter contexts: one selection policy a file, see `docs/semantics.md`, section 4."""
