"""Golden vectors: the oracle's knowledge as files. Planned; nothing is here yet."""
