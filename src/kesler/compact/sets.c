/* ---- a set of labels of each text ------------------------------------------------------------ */

/* Write the logarithm of the odds of each label; return the number of the highest. */
static int odds_of(const char *text, size_t n, i64 *odds)
{
    const u64 square = score(text, n, odds, (u32 *)(odds + N_OWNERS));
    int best = 0;
    for (int i = 0; i < N_CLASSES; i++)
        odds[i] += odds[N_CLASSES];
    scale_of(odds, square);
    for (int i = 1; i < N_CLASSES; i++)
        if (odds[i] > odds[best])
            best = i;
    return best;
}

static double probability_of(i64 odds)
{
    const double z = (double)odds * (INVERSE / FRACTION), e = power(z < 0 ? z : -z);
    return (z < 0 ? e : 1) / (1 + e);
}

int NAME_predict(const char *text, size_t n, void *scratch, double *probability)
{
    i64 *const odds = scratch;
    const int best = odds_of(text, n, odds);
    if (probability)
        *probability = probability_of(odds[best]);
    return best;
}

void NAME_probabilities(const char *text, size_t n, void *scratch, double *probabilities)
{
    i64 *const odds = scratch;
    odds_of(text, n, odds);
    for (int i = 0; i < N_CLASSES; i++)
        probabilities[i] = probability_of(odds[i]);
}
