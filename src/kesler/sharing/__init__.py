"""Few features for all classes: ShareBoost, its rivals, dictionaries, exports."""
