# SPDX-License-Identifier: Apache-2.0
"""What scripts/lint checks, one module a check: check(root, selection, options) -> finding lines."""
