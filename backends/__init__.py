"""The targets that are shipped, `cpu` and `cuda`, and in `common` what they share."""
