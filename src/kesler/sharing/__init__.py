"""Few features for all classes: ShareBoost, alternatives, dictionaries and exports."""
