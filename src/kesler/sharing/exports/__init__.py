"""Compact predictors and their export as Python, C or ONNX."""
