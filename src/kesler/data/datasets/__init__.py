"""Data sets: small ones that are included, others that are downloaded, and synthetic ones."""
