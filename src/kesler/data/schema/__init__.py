"""The schema of a table: the kind of each column, and how its cells become features."""
