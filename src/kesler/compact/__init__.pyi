from .classifier import CompactClassifier as CompactClassifier
