/* ---- features ------------------------------------------------------------------------------- */

/* The CRCs of the last 1, 2, ... characters, with what names of features begin with. */
struct runs {
    u32 crc[MOST_RUN + 1];
    int n;
};

struct reading {
    u32 (*table)[2]; /* the record of a feature, counted from 1, and how often it occurs */
    u32 last;        /* the number of places less 1 */
    u32 *used;       /* the places in use */
    size_t n_used;
    u64 n_unknown;
    u32 *spare; /* for as many characters as a word has, and one more */
    int is_first;  /* whether the words are those of the beginning, as features of their own */
    u32 ngrams[4]; /* the CRCs of the last 1, 2 and 3 tokens with spaces between */
    int n_tokens;
    struct runs runs; /* of characters across words */
};

static inline u32 with_character(u32 crc, u32 c)
{
    u8 bytes[4];
    int n = 1;
    if (c < 0x80) {
        bytes[0] = (u8)c;
    } else if (c < 0x800) {
        bytes[0] = (u8)(0xc0 | c >> 6);
        bytes[1] = (u8)(0x80 | (c & 63));
        n = 2;
    } else if (c < 0x10000) {
        bytes[0] = (u8)(0xe0 | c >> 12);
        bytes[1] = (u8)(0x80 | (c >> 6 & 63));
        bytes[2] = (u8)(0x80 | (c & 63));
        n = 3;
    } else {
        bytes[0] = (u8)(0xf0 | c >> 18);
        bytes[1] = (u8)(0x80 | (c >> 12 & 63));
        bytes[2] = (u8)(0x80 | (c >> 6 & 63));
        bytes[3] = (u8)(0x80 | (c & 63));
        n = 4;
    }
    for (int i = 0; i < n; i++)
        crc = crc_of[(crc ^ bytes[i]) & 255] ^ crc >> 8;
    return crc;
}

static void count_record(struct reading *reading, u32 at)
{
    u32 place = at * MIXED >> 7 & reading->last;
    while (reading->table[place][1] && reading->table[place][0] != at)
        place = (place + 1) & reading->last;
    if (!reading->table[place][1]++) {
        reading->table[place][0] = at;
        reading->used[reading->n_used++] = place;
    }
}

/* Count a feature by the CRC of its name. */
static void count(struct reading *reading, u32 crc)
{
    const u32 key = (u32)((u64)((crc ^ 0xffffffffu) * MIXED) >> (32 - KEY_BITS));
    const u32 bucket = key >> REST_BITS, rest = lowest(key, REST_BITS);
    u64 at = number_at(buckets + 4 * (size_t)bucket);
    const u64 end = number_at(buckets + 4 * (size_t)bucket + 4);
    while (at < end) {
        const u64 record = bits_from(records, at);
        const u32 found = lowest(record, REST_BITS);
        if (found == rest) {
            count_record(reading, (u32)at);
            return;
        }
        if (found > rest)
            break;
        at += REST_BITS + COUNT_BITS + (u64)lowest(record >> REST_BITS, COUNT_BITS) * ENTRY_BITS;
    }
    reading->n_unknown++;
}

static u32 with_characters(u32 crc, const u32 *at, size_t n)
{
    for (size_t i = 0; i < n; i++)
        crc = with_character(crc, at[i]);
    return crc;
}

/* Count the runs of least to most characters that end with the next one. */
static void count_runs(
    struct reading *reading, struct runs *runs, u32 next, u32 begin, int least, int most)
{
    runs->n += runs->n < most;
    for (int length = runs->n; length > 1; length--)
        runs->crc[length] = with_character(runs->crc[length - 1], next);
    runs->crc[1] = with_character(begin, next);
    for (int length = least; length <= runs->n; length++)
        count(reading, runs->crc[length]);
}

/* Count a token, and the runs of tokens that end with it. */
static void count_ngrams(struct reading *reading, const u32 *token, size_t n)
{
    u32 *const crc = reading->ngrams;
    const int longest = reading->n_tokens < NGRAMS ? ++reading->n_tokens : NGRAMS;
    for (int length = longest; length > 1; length--)
        crc[length] = with_characters(with_character(crc[length - 1], ' '), token, n);
    crc[1] = with_characters(BEGIN_WORDS, token, n);
    for (int length = 1; length <= longest; length++)
        count(reading, crc[length]);
}

/* Count the runs of characters of a token with the spaces around it, but no space alone. */
static void count_subwords(struct reading *reading, const u32 *token, size_t n)
{
    struct runs runs;
    runs.n = 0;
    for (size_t i = 0; i < n + 2; i++) {
        const int is_space = !i || i > n, least = is_space && LEAST_SUBWORD < 2 ? 2 : LEAST_SUBWORD;
        const u32 next = is_space ? ' ' : token[i - 1];
        count_runs(reading, &runs, next, BEGIN_SUBWORDS, least, MOST_SUBWORD);
    }
}

/* Count the runs of characters across tokens that end within one, or with the space behind it. */
static void count_across(struct reading *reading, const u32 *token, size_t n)
{
    for (size_t i = 0; i <= n; i++) {
        const u32 next = i < n ? token[i] : ' ';
        count_runs(reading, &reading->runs, next, BEGIN_CHARS, LEAST_CHARS, MOST_CHARS);
    }
}

/* Count the features that a token ends. */
static void take(struct reading *reading, const u32 *token, size_t n)
{
    if (reading->is_first) {
        count(reading, with_characters(BEGIN_FIRST, token, n));
        return;
    }
    count_ngrams(reading, token, n);
    if (MOST_SUBWORD)
        count_subwords(reading, token, n);
    if (MOST_CHARS)
        count_across(reading, token, n);
}

/* Return whether a cluster goes on between two characters, given those before the second. */
static int goes_on(const u32 *first, const u32 *at)
{
    const unsigned a = cluster_of[class_of(at[-1])], b = cluster_of[class_of(*at)];
    if (b == C_EXTEND || b == C_LINKER || b == C_ZWJ || b == C_SPACING || a == C_PREPEND)
        return 1;
    if (a == C_L)
        return b == C_L || b == C_V || b == C_LV || b == C_LVT;
    if (a == C_LV || a == C_V)
        return b == C_V || b == C_T;
    if (a == C_LVT || a == C_T)
        return b == C_T;
    if (b != C_CONSONANT)
        return 0;
    /* As `regex` does: a linker joins a consonant to whatever is before. */
    while (at-- > first) {
        const unsigned before = cluster_of[class_of(*at)];
        if (before == C_LINKER)
            return 1;
        if ((before != C_EXTEND && before != C_ZWJ) || *at == 0x200c)
            return 0;
    }
    return 0;
}

/* Take the runs of least to most clusters of a word, the short ones first. */
static void take_clusters(
    struct reading *reading, const u32 *word, size_t n, size_t least, size_t most)
{
    u32 *const starts = reading->spare;
    size_t n_starts = 0;
    for (size_t i = 0; i < n; i++)
        if (!i || !goes_on(word, word + i))
            starts[n_starts++] = (u32)i;
    starts[n_starts] = (u32)n;
    for (size_t length = least; length <= most; length++)
        for (size_t i = 0; i + length <= n_starts; i++)
            take(reading, word + starts[i], starts[i + length] - starts[i]);
}

/* Take a word without its vowels, if it has some and something else. */
static void take_consonants(struct reading *reading, const u32 *word, size_t n)
{
    size_t found = 0;
    for (size_t i = 0; i < n; i++)
        if (!has(word[i], IS_VOWEL))
            reading->spare[found++] = word[i];
    if (found && found < n)
        take(reading, reading->spare, found);
}

/* Take the tokens of a word: itself, or the parts of one of a script whose words are cut. */
static void take_word(struct reading *reading, const u32 *word, size_t n, int is_cut)
{
    if (is_cut && has(word[0], IS_UNSPACED)) {
        take_clusters(reading, word, n, 1, 3);
        return;
    }
    take(reading, word, n);
    if (is_cut && n > 2 && has(word[0], IS_SYLLABIC))
        take_clusters(reading, word, n, 2, 2);
    else if (is_cut)
        take_consonants(reading, word, n);
}

/* Count the runs of least or more characters of a line in capitals, with spaces around. */
static void count_capitals(struct reading *reading, const u32 *line, size_t n, int least)
{
    struct runs runs;
    runs.n = 0;
    for (size_t i = 0; i < n + 2; i++) {
        const u32 c = i && i <= n ? line[i - 1] : ' ';
        u32 more[4] = {c - 'a' < 26 ? c - 32 : c};
        const size_t n_more = c < 0x80 ? 1 : mapped(&uppers, c, more);
        for (size_t j = 0; j < n_more; j++)
            count_runs(reading, &runs, more[j], BEGIN_CAPITALS, least, LONGEST_RUN);
    }
}

/* Count the features of a line of words with spaces between; its runs of least or more if not 0. */
static void count_line(struct reading *reading, const u32 *line, size_t n, int least)
{
    size_t start = 0, before = 0;
    int is_cut = 0;
    if (MOST_CHARS && !reading->is_first)
        count_across(reading, line, 0); /* the space before the first token */
    for (size_t i = 0; i < n; i++)
        is_cut |= line[i] >= FIRST_CUT && (!i || line[i - 1] == ' ');
    for (size_t i = 0; i <= n && n; i++) {
        if (i < n && line[i] != ' ')
            continue;
        take_word(reading, line + start, i - start, is_cut);
        if (least && before < start)
            count(reading, with_characters(BEGIN_WORDS, line + before, i - before));
        before = start;
        start = i + 1;
    }
    if (MOST_CHARS && !n && !reading->is_first)
        count_across(reading, line, 0); /* a line without tokens has two spaces */
    if (least && n)
        count_capitals(reading, line, n, least);
}

/* ---- scores --------------------------------------------------------------------------------- */

/*
 * Return the most known features of a folded line of n characters. N_FEATURES is a bound;
 * MOST_OF_CHARACTER (n + 1) is another.
 *
 * A word of n letters has no more than 3 n tokens: of a script without spaces, a letter ends runs
 * of 1, 2 and 3; another word is a token, with a pair of syllables for each letter but the first,
 * or one without its vowels. These tokens have 6 n letters at most, those of the runs of 1, 2 and
 * 3. With NGRAMS, each token ends as many runs of tokens: 3 n NGRAMS features. With spaces around
 * them, a token of m letters has at most m + 1 runs of one length: 9 n subwords of each. The line
 * of all tokens has a space more than tokens, or two and no token: 9 n + 2 characters end as many
 * runs of each length. Of a short text, a word of n letters has a token if n is 1, else no more
 * than 3 n - 2, and with its pair no more than 3 n - 1. In capitals, a letter is up to 3 characters,
 * each of which ends a run of each length, and so do the space behind the word and the first one: L
 * runs of a character make (2 + 4 L) n features and L more at most. The words in the beginning of a
 * long text have 3 n tokens once more.
 */
static size_t most_features(size_t n)
{
    return n + 1 <= N_FEATURES / MOST_OF_CHARACTER ? MOST_OF_CHARACTER * (n + 1) : N_FEATURES + 1;
}

/* Return the places of the table: twice the most features, or more. */
static size_t places_for(size_t n)
{
    size_t places = 16;
    while (places < 2 * most_features(n))
        places *= 2;
    return places;
}

static u32 damped(u32 n)
{
    u32 found = ONE;
    while (found - ONE < N_LEAST_COUNTS && least_counts[found - ONE] <= n)
        found++;
    return found;
}

/* Write the sum of levels of each owner of entries; return the squared length of the text. */
static u64 add_up(const struct reading *reading, int is_short, i64 *scores)
{
    u64 square = reading->n_unknown * ONE * ONE;
    i64 products[1 << CODE_BITS]; /* of the levels and a number of times, most often the same */
    u32 factor = 0;
    for (int i = 0; i < N_OWNERS; i++)
        scores[i] = 0;
    for (size_t j = 0; j < reading->n_used; j++) {
        const u32 *feature = reading->table[reading->used[j]];
        const u32 times = is_short ? ONE : damped(feature[1]);
        u64 at = feature[0];
        u32 n = lowest(bits_from(records, at) >> REST_BITS, COUNT_BITS);
        square += (u64)times * times;
        if (times != factor) {
            factor = times;
            for (int c = 0; c < 1 << CODE_BITS; c++)
                products[c] = (i64)factor * levels[c];
        }
        for (at += REST_BITS + COUNT_BITS; n; n--, at += ENTRY_BITS) {
            const u64 entry = bits_from(records, at);
            scores[lowest(entry, OWNER_BITS)] += products[lowest(entry >> OWNER_BITS, CODE_BITS)];
        }
    }
    return square;
}

/* Return whether texts are short on average, those that were learnt and one of n characters. */
static int are_within(u64 limit, size_t n)
{
    return N_CHARACTERS + (u64)n <= limit * (N_TEXTS + 1);
}

/* Return the least length of the runs of a text of n characters, 0 if it is long. */
static int least_run_of(size_t n)
{
    if (NAME && are_within(NAME, n))
        return LEAST_RUN_OF_NAMES;
    return HAS_SHORT && are_within(SHORT_TEXT, n) ? LEAST_RUN : 0;
}

/* Return whether the beginning of a text may end before a character. */
static int is_blank(u32 c)
{
    return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

/* Return the length of the beginning of a text of n characters. */
static size_t beginning_of(const u32 *text, size_t n)
{
    if (n <= BEGINNING)
        return n;
    for (size_t i = BEGINNING; i; i--)
        if (is_blank(text[i]))
            return i;
    return BEGINNING;
}

/* Count the words of the beginning of a text of n bytes as features of their own. */
static void count_beginning(
    struct reading *reading, const u8 *text, size_t n, u32 *characters, u32 *line)
{
    u32 *const more = characters + 6 * n + 8;
    for (; n && is_blank(*text); n--)
        text++;
    const size_t some = n < 4 * (BEGINNING + 1) ? n : 4 * (BEGINNING + 1);
    const size_t n_first = beginning_of(characters, decode(text, some, characters));
    int is_plain;
    size_t n_line = folded(characters, n_first, line, more, &is_plain);
    n_line = units_of(line, n_line, is_plain, characters);
    reading->is_first = 1;
    count_line(reading, characters, n_line, 0);
}

/* Write the score of each owner of entries for a text; return its squared length. */
static u64 score(const char *text, size_t n, i64 *scores, u32 *scratch)
{
    u32 *const characters = scratch, *const line = scratch + 12 * n + 16;
    const size_t length = decode((const u8 *)text, n, characters);
    const int least = least_run_of(length);
    struct reading reading;
    int is_plain;
    size_t n_line = folded(characters, length, line, characters + 6 * n + 8, &is_plain);
    reading.table = (u32(*)[2])(line + 6 * n + 8);
    reading.last = (u32)(places_for(n_line) - 1);
    reading.used = (u32 *)(reading.table + reading.last + 1);
    for (size_t i = 0; i <= reading.last; i++)
        reading.table[i][0] = reading.table[i][1] = 0;
    reading.spare = line;
    reading.n_used = 0;
    reading.n_unknown = 0;
    reading.is_first = reading.n_tokens = reading.runs.n = 0;
    n_line = units_of(line, n_line, is_plain, characters);
    count_line(&reading, characters, n_line, least);
    if (BEGINNING && !least)
        count_beginning(&reading, (const u8 *)text, n, characters, line);
    return add_up(&reading, least, scores);
}

/* Return e to the power of t, which is not above 0. */
static double power(double t)
{
    union {
        u64 bits;
        double number;
    } two;
    double sum = 1, term = 1;
    int n;
    if (t < -700)
        return 0;
    n = (int)(t * 1.4426950408889634 - 0.5);
    t = (t - n * 0.693147180369123816490) - n * 1.90821492927058770002e-10;
    for (int i = 1; i < 16; i++)
        sum += term *= t / i;
    two.bits = (u64)(n + 1023) << 52;
    return sum * two.number;
}

size_t NAME_scratch(size_t n)
{
    return 8 * N_OWNERS + 4 * (18 * n + 24) + 8 * places_for(6 * n) + 4 * most_features(6 * n);
}
