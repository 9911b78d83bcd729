"""The one exception that Kesler raises for what a user can mend."""


class KeslerError(ValueError):
    """What was wrong, where, and what to do, in one sentence.

    Kesler's own refusals are of this type (a ``ValueError`` too, as scikit-learn expects, whose
    validation raises its own); the
    command line prints its sentence and exits with code 2.

    Examples
    --------
    >>> from kesler.errors import KeslerError
    >>> raise KeslerError("row 3 holds NaN: fill or drop missing values")
    Traceback (most recent call last):
    ...
    kesler.errors.KeslerError: row 3 holds NaN: fill or drop missing values
    """
