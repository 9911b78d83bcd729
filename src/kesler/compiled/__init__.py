"""The inner loops, compiled by Numba: arithmetic without policy.

Nothing here is imported before the first trial, so that ``import kesler`` stays cheap.
"""
