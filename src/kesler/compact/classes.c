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

int NAME_predict(const char *text, size_t n, void *scratch, double *probability)
{
    i64 *const scores = scratch;
    const u64 square = score(text, n, scores, (u32 *)(scores + N_OWNERS));
    const double scale = scale_of(scores, square);
    const int best = best_of(scores);
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
    const double scale = scale_of(scores, square);
    const i64 most = scores[best_of(scores)];
    double sum = 0;
    for (int i = 0; i < N_CLASSES; i++)
        sum += probabilities[i] = power((double)(scores[i] - most) * scale);
    for (int i = 0; i < N_CLASSES; i++)
        probabilities[i] = (1 - LAPSE) * probabilities[i] / sum + LAPSE / N_CLASSES;
}
