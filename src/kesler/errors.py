"""The exception that Kesler raises for errors that a user can correct, and its warnings."""


class KeslerError(ValueError):
    """Exception for invalid input, parameters or files.

    Its message is one sentence that says what was wrong, where, and what to do. It derives from
    ``ValueError``, as scikit-learn expects; scikit-learn's own validation raises its own errors.
    The command line prints the message and exits with code 2.

    Examples
    --------
    >>> from kesler.errors import KeslerError
    >>> raise KeslerError("row 3 holds NaN: fill or drop missing values")
    Traceback (most recent call last):
    ...
    kesler.errors.KeslerError: row 3 holds NaN: fill or drop missing values
    """


class MismatchWarning(UserWarning):
    """A cell that its column cannot hold counts as missing."""


class ReadingWarning(UserWarning):
    """A file was read in a way that was found in it, and that may be wrong."""
