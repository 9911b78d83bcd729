/* ---- one class of each text ------------------------------------------------------------------ */

static int best_of(const i64 *scores)
{
    int best = 0;
    i64 most = scores[0]; /* held, since reading it again costs more than all else of a class */
    for (int i = 1; i < N_CLASSES; i++)
        if (scores[i] > most) {
            most = scores[i];
            best = i;
        }
    return best;
}

/* Return the inverse temperature: that of the file or, if it has none, of the scores themselves. */
static double tempered(const i64 *scores, int best, double scale)
{
    i64 least = scores[best];
    if (INVERSE > 0)
        return scale;
    for (int i = 0; i < N_CLASSES; i++)
        least = scores[i] < least ? scores[i] : least;
    return least < scores[best] ? SPREAD / (double)(scores[best] - least) : 0;
}

int NAME_predict(const char *text, size_t n, void *scratch, double *probability)
{
    i64 *const scores = scratch;
    const u64 square = score(text, n, scores, (u32 *)(scores + N_OWNERS));
    const double given = scale_of(scores, square);
    const int best = best_of(scores);
    const double scale = tempered(scores, best, given);
    double sum = 0;
    if (!probability)
        return best;
    for (int i = 0; i < N_CLASSES; i++)
        sum += power((double)(scores[i] - scores[best]) * scale);
    *probability = (1 - LAPSE) / sum + LAPSE / N_CLASSES;
    return best;
}

void NAME_probabilities(const char *text, size_t n, void *scratch, double *probabilities)
{
    i64 *const scores = scratch;
    const u64 square = score(text, n, scores, (u32 *)(scores + N_OWNERS));
    const double given = scale_of(scores, square);
    const int best = best_of(scores);
    const double scale = tempered(scores, best, given);
    const i64 most = scores[best];
    double sum = 0;
    for (int i = 0; i < N_CLASSES; i++)
        sum += probabilities[i] = power((double)(scores[i] - most) * scale);
    for (int i = 0; i < N_CLASSES; i++)
        probabilities[i] = (1 - LAPSE) * probabilities[i] / sum + LAPSE / N_CLASSES;
}
