"""Data sets: small ones that come with Kesler, others found or fetched, and synthetic ones."""
