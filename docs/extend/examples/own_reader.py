"""A reader of rows, written by a user."""


# [reader]
def read_rows(lines):
    """Yield a dictionary of features and a class for each line 'class; name=number, ...'."""
    for number, line in enumerate(lines, start=1):
        label, separator, features = line.partition(";")
        if not separator:
            raise ValueError(f"line {number} has no ';' after the class: {line.strip()!r}")
        pairs = (pair.split("=") for pair in features.split(","))
        yield {name.strip(): float(value) for name, value in pairs}, label.strip()
