/* ---- the scores of each class: the sum of its levels, in a text of some length ---------------- */

/* Return the square root of a number, of 1 if it is less. */
static double root(double square)
{
    double found, next = square = square > 1 ? square : 1;
    do {
        found = next;
        next = (found + square / found) / 2;
    } while (next < found);
    return found;
}

/* Return the inverse temperature of sums of levels. */
static double scale_of(const i64 *scores, u64 square)
{
    (void)scores;
    return INVERSE / root((double)square);
}
