/* ---- the odds of each class: the sum of its levels over the length of a text, and an offset ---- */

/* Return the largest number whose square is not above another, one below 2 to the power of 62. */
static u64 root(u64 square)
{
    u64 found = 0;
    for (u64 bit = (u64)1 << 30; bit; bit >>= 1)
        if ((found + bit) * (found + bit) <= square)
            found += bit;
    return found;
}

static i64 floor_of(i64 a, i64 b)
{
    return a / b - (a % b < 0);
}

/* Replace sums of levels by odds; return the inverse temperature of these. */
static double scale_of(i64 *scores, u64 square)
{
    const i64 length = (i64)root((square ? square : 1) * FRACTION * FRACTION);
    for (int i = 0; i < N_CLASSES; i++)
        scores[i] = floor_of(scores[i] * FRACTION * FRACTION, length) + offsets[i];
    return INVERSE / FRACTION;
}
