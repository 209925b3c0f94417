"""What scripts/lint checks, one module a check: check(root, selection, deep) -> finding lines."""
