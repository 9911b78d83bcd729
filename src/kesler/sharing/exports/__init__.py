"""Compact predictors, written as Python, C or ONNX."""
