/* ---- bytes ---------------------------------------------------------------------------------- */

typedef unsigned char u8;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int64_t i64;

static inline u32 number_at(const u8 *p)
{
    return (u32)p[0] | (u32)p[1] << 8 | (u32)p[2] << 16 | (u32)p[3] << 24;
}

/* Return the bits from a bit on, of which 57 are those of the records. */
static inline u64 bits_from(const u8 *p, u64 bit)
{
    const u8 *first = p + (bit >> 3);
    return ((u64)number_at(first) | (u64)number_at(first + 4) << 32) >> (bit & 7);
}

static inline u32 lowest(u64 bits, unsigned n)
{
    return (u32)(bits & (((u64)1 << n) - 1));
}

/* ---- properties of characters --------------------------------------------------------------- */

static inline unsigned class_of(u32 c)
{
    return class_at[class_block[c >> BLOCK]][c & ((1u << BLOCK) - 1)];
}

static inline unsigned has(u32 c, unsigned kinds)
{
    return kinds_of[class_of(c)] & kinds;
}

/* Return the place of a number in an ascending table, -1 if it is not there. */
static int place_of(u32 c, const u32 *keys, int n)
{
    int least = 0, most = n - 1;
    while (least <= most) {
        const int middle = (least + most) / 2;
        if (keys[middle] == c)
            return middle;
        if (keys[middle] < c)
            least = middle + 1;
        else
            most = middle - 1;
    }
    return -1;
}

struct map {
    const u32 *keys;
    const uint16_t *starts;
    const u32 *values;
    int n;
};

static const struct map folds = {fold_key, fold_start, fold_value, N_FOLDS};
static const struct map uppers = {upper_key, upper_start, upper_value, N_UPPERS};
static const struct map parts = {part_key, part_start, part_value, N_PARTS};

/* Write what a map makes of a character; return the number of characters. */
static size_t mapped(const struct map *map, u32 c, u32 *out)
{
    const int place = place_of(c, map->keys, map->n);
    size_t n = 0;
    if (place < 0) {
        out[0] = c;
        return 1;
    }
    for (int i = map->starts[place]; i < map->starts[place + 1]; i++)
        out[n++] = map->values[i];
    return n;
}

/* ---- the form in which texts are read ------------------------------------------------------- */

/* Decode UTF-8; a character in place of each longest beginning of a wrong sequence. */
static size_t decode(const u8 *text, size_t n, u32 *out)
{
    size_t i = 0, found = 0;
    while (i < n) {
        const u8 first = text[i++];
        u32 c = first, least = 0x80, most = 0xbf;
        int more = 0;
        if (first >= 0xf0 && first <= 0xf4) {
            more = 3;
            c = first & 7u;
            least = first == 0xf0 ? 0x90 : 0x80;
            most = first == 0xf4 ? 0x8f : 0xbf;
        } else if (first >= 0xe0 && first < 0xf0) {
            more = 2;
            c = first & 15u;
            least = first == 0xe0 ? 0xa0 : 0x80;
            most = first == 0xed ? 0x9f : 0xbf;
        } else if (first >= 0xc2 && first < 0xe0) {
            more = 1;
            c = first & 31u;
        } else if (first >= 0x80) {
            c = REPLACEMENT;
        }
        for (; more; more--) {
            if (i == n || text[i] < least || text[i] > most) {
                c = REPLACEMENT;
                break;
            }
            c = c << 6 | (text[i++] & 63u);
            least = 0x80;
            most = 0xbf;
        }
        out[found++] = c;
    }
    return found;
}

static size_t fold(const u32 *in, size_t n, u32 *out)
{
    size_t found = 0;
    for (size_t i = 0; i < n; i++) {
        if (in[i] < 0x80)
            out[found++] = in[i] - 'A' < 26 ? in[i] + 32 : in[i];
        else
            found += mapped(&folds, in[i], out + found);
    }
    return found;
}

/* Remove the dot above from an i. */
static size_t without_dots(u32 *line, size_t n)
{
    size_t found = 0;
    for (size_t i = 0; i < n; i++) {
        line[found++] = line[i];
        if (line[i] == 'i' && i + 1 < n && line[i + 1] == 0x307)
            i++;
    }
    return found;
}

/* Order marks, whose classes are 1 to 254, by their classes. */
static void order_marks(u32 *marks, size_t n, u32 *spare)
{
    size_t found = 0, i = 1;
    while (i < n && rank_of[class_of(marks[i - 1])] <= rank_of[class_of(marks[i])])
        i++;
    if (i >= n)
        return;
    for (unsigned rank = 1; found < n; rank++)
        for (size_t j = 0; j < n; j++)
            if (rank_of[class_of(marks[j])] == rank)
                spare[found++] = marks[j];
    for (i = 0; i < n; i++)
        marks[i] = spare[i];
}

static size_t decompose(const u32 *in, size_t n, u32 *out, u32 *spare)
{
    size_t found = 0, first = 0;
    for (size_t i = 0; i < n; i++) {
        const u32 c = in[i], s = c - 0xac00;
        if (c < 0x80) {
            out[found++] = c;
        } else if (s < 11172) {
            out[found++] = 0x1100 + s / 588;
            out[found++] = 0x1161 + s % 588 / 28;
            if (s % 28)
                out[found++] = 0x11a7 + s % 28;
        } else {
            found += mapped(&parts, c, out + found);
        }
    }
    for (size_t i = 0; i <= found; i++)
        if (i == found || !rank_of[class_of(out[i])]) {
            order_marks(out + first, i - first, spare);
            first = i + 1;
        }
    return found;
}

/* Return the character that two make, 0 if they make none. */
static u32 composed(u32 a, u32 b)
{
    int least = 0, most = N_PAIRS - 1;
    if (a - 0x1100 < 19 && b - 0x1161 < 21)
        return 0xac00 + ((a - 0x1100) * 21 + (b - 0x1161)) * 28;
    if (a - 0xac00 < 11172 && (a - 0xac00) % 28 == 0 && b - 0x11a8 < 27)
        return a + b - 0x11a7;
    while (least <= most) {
        const int middle = (least + most) / 2;
        const u32 *pair = pairs[middle];
        if (pair[0] == a && pair[1] == b)
            return pair[2];
        if (pair[0] < a || (pair[0] == a && pair[1] < b))
            least = middle + 1;
        else
            most = middle - 1;
    }
    return 0;
}

/* Write a text in normalization form KC; return its length. */
static size_t normalize(const u32 *in, size_t n, u32 *out, u32 *spare)
{
    const size_t length = decompose(in, n, out, spare);
    size_t found = 0, starter = 0;
    int has_starter = 0;
    unsigned last = 0; /* the class of the mark before, 0 behind a starter */
    for (size_t i = 0; i < length; i++) {
        const u32 c = out[i];
        const unsigned rank = rank_of[class_of(c)];
        const int is_near = found == starter + 1 || (last && last < rank);
        const u32 whole = has_starter && c >= 0x80 && is_near ? composed(out[starter], c) : 0;
        if (whole) {
            out[starter] = whole;
            continue;
        }
        if (!rank) {
            starter = found;
            has_starter = 1;
        }
        last = rank;
        out[found++] = c;
    }
    return found;
}

/* Put ' in the place of apostrophes between letters. */
static void plain_apostrophes(u32 *line, size_t n)
{
    for (size_t i = 1; i + 1 < n; i++)
        if ((line[i] == 0x2019 || line[i] == 0x2bc) && !has(line[i - 1], IS_SPACE) &&
            (line[i + 1] == '_' || has(line[i + 1], IS_PLAIN)))
            line[i] = '\'';
}

/* Return whether a line has characters beyond those whose words are plain. */
static int holds_other(const u32 *line, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (has(line[i], IS_OTHER))
            return 1;
    return 0;
}

/* Fold a text of n characters to `line`; return its length, and whether its words are plain. */
static size_t folded(u32 *text, size_t n, u32 *line, u32 *spare, int *is_plain)
{
    size_t length, kept = 0;
    int is_ascii = 1;
    for (size_t i = 0; i < n; i++)
        is_ascii &= text[i] < 0x80;
    length = fold(text, n, line);
    *is_plain = 1;
    if (is_ascii)
        return length;
    length = without_dots(line, length);
    if (holds_other(line, length)) {
        length = normalize(text, n, line, spare);
        length = fold(line, length, text);
        length = normalize(text, length, line, spare);
        length = without_dots(line, length);
        for (size_t i = 0; i < length; i++)
            if (!has(line[i], IS_INVISIBLE))
                line[kept++] = line[i];
        length = kept;
    }
    plain_apostrophes(line, length);
    *is_plain = !holds_other(line, length);
    return length;
}

#define FACES ")(][}{|/\\*@$dpox3"

/* ---- words and signs ------------------------------------------------------------------------ */

struct line {
    const u32 *at;
    size_t n;
    unsigned letters; /* the kind of characters that a sign is not beside */
};

static u32 character(const struct line *line, size_t i)
{
    return i < line->n ? line->at[i] : 0;
}

static int is_letter(const struct line *line, size_t i)
{
    return i < line->n && has(line->at[i], line->letters);
}

static int is_of(u32 c, const char *characters)
{
    for (; *characters; characters++)
        if (c == (u8)*characters)
            return 1;
    return 0;
}

static size_t end_of_run(const struct line *line, size_t i, const char *characters)
{
    while (i < line->n && is_of(line->at[i], characters))
        i++;
    return i;
}

static int is_end(u32 c)
{
    return c == '+' || c == '#';
}

/* Return where a word ends whose letters end at i: behind + or # if it ends so, as in C++. */
static size_t end_of_word(const struct line *line, size_t i)
{
    const u32 last = line->at[i - 1], sign = character(line, i);
    const int is_double = sign == '+' && character(line, i + 1) == '+';
    const size_t stop = is_double ? i + 2 : i + 1;
    if (!(last - '0' < 10 || last - 'a' < 26) || !is_end(sign) || is_end(character(line, stop)))
        return i;
    return is_double || !is_letter(line, stop) ? stop : i;
}

static size_t end_of_face(const struct line *line, size_t i)
{
    const size_t nose = i + 1 + (character(line, i + 1) == '\'');
    size_t stop;
    if (is_of(character(line, nose), "-^")) {
        stop = end_of_run(line, nose + 1, FACES);
        return stop > nose + 1 && !is_letter(line, stop) ? stop : i;
    }
    if (i && (line->at[i - 1] == '\'' || is_letter(line, i - 1)))
        return i;
    stop = end_of_run(line, nose, ")([]");
    if (stop > nose)
        return stop;
    stop = nose + 1;
    return end_of_run(line, nose, FACES) > nose && !is_letter(line, stop) &&
                   character(line, stop) != '/'
               ? stop
               : i;
}

/* Return where the sign ends that begins at i; i if there is none. */
static size_t end_of_sign(const struct line *line, size_t i)
{
    const u32 c = line->at[i], next = character(line, i + 1), third = character(line, i + 2);
    if (c == '!' || c == '?') {
        const size_t stop = end_of_run(line, i, "!?");
        return stop > i + 1 ? stop : i;
    }
    if (c == ':' || c == ';' || c == '=')
        return end_of_face(line, i);
    if (c == '<')
        return next == '3' && !is_letter(line, i + 2) ? i + 2 : i;
    if ((c == '-' || c == '^' || c == '>') && (next == '_' || next == '.') &&
        (third == '-' || third == '^' || third == '<') && character(line, i + 3) != '-')
        return i + 3;
    return i;
}

static size_t end_of_kind(const struct line *line, size_t i, unsigned kind)
{
    while (i < line->n && has(line->at[i], kind))
        i++;
    return i;
}

static int is_joint(const struct line *line, size_t i)
{
    const u32 c = character(line, i);
    if (!has(character(line, i + 1), IS_FIRST) || i + 1 >= line->n)
        return 0;
    if (c == 0xb7 || c == 0x5f3 || c == 0x5f4)
        return has(line->at[i + 1], IS_ALPHABETIC) != 0;
    return c == '"' && has(line->at[i - 1], IS_BEFORE_QUOTE) && has(line->at[i + 1], IS_HEBREW);
}

static int is_flag(u32 c)
{
    return c - 0x1f1e6 < 26;
}

/* Return where the picture ends that begins at i; i if there is none. */
static size_t end_of_picture(const struct line *line, size_t i)
{
    size_t stop = i;
    if (is_flag(character(line, i)) && is_flag(character(line, i + 1)))
        return i + 2;
    while (stop < line->n && has(line->at[stop], IS_SYMBOL)) {
        i = end_of_kind(line, stop + 1, IS_MODIFIER);
        if (character(line, i) != 0x200d)
            return i;
        stop = i + 1;
    }
    return i;
}

/* Return where the word or sign ends that begins at i; i if there is none. */
static size_t end_of_unit(const struct line *line, size_t i, int is_plain)
{
    size_t stop;
    if (is_plain) {
        stop = end_of_kind(line, i, IS_PLAIN | IS_APOSTROPHE);
        return stop > i ? end_of_word(line, stop) : end_of_sign(line, i);
    }
    if (has(line->at[i], IS_FIRST)) {
        stop = end_of_kind(line, i, IS_LATER);
        while (is_joint(line, stop))
            stop = end_of_kind(line, stop + 1, IS_LATER);
        return end_of_word(line, stop);
    }
    if (has(line->at[i], IS_UNSPACED))
        return end_of_kind(line, i, IS_UNSPACED | IS_MARK);
    stop = end_of_picture(line, i);
    return stop > i ? stop : end_of_sign(line, i);
}

/* Write the words and signs of a line with spaces between; return the length. */
static size_t units_of(const u32 *at, size_t n, int is_plain, u32 *out)
{
    const struct line line = {at, n, is_plain ? IS_PLAIN : IS_WORD};
    size_t found = 0, i = 0;
    while (i < n) {
        const size_t stop = end_of_unit(&line, i, is_plain);
        if (stop > i && found)
            out[found++] = ' ';
        for (size_t j = i; j < stop; j++)
            out[found++] = at[j];
        i = stop > i ? stop : i + 1;
    }
    if (found)
        return found;
    for (i = 0; i < n; i++) {
        if (has(at[i], IS_SPACE)) {
            if (found && out[found - 1] != ' ')
                out[found++] = ' ';
        } else {
            out[found++] = at[i];
        }
    }
    return found && out[found - 1] == ' ' ? found - 1 : found;
}

/* ---- features ------------------------------------------------------------------------------- */

struct reading {
    u32 (*table)[2]; /* the record of a feature, counted from 1, and how often it occurs */
    u32 last;        /* the number of places less 1 */
    u32 *used;       /* the places in use */
    size_t n_used;
    u64 n_unknown;
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

static void count_characters(struct reading *reading, const u32 *at, size_t n)
{
    u32 crc = 0xffffffffu;
    for (size_t i = 0; i < n; i++)
        crc = with_character(crc, at[i]);
    count(reading, crc);
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

/* Count the runs of least to most clusters of a word. */
static void count_clusters(
    struct reading *reading, const u32 *word, size_t n, size_t least, size_t most)
{
    size_t starts[4] = {0, 0, 0, 0}, n_starts = 1;
    for (size_t i = 1; i <= n; i++) {
        if (i < n && goes_on(word, word + i))
            continue;
        for (size_t length = least; length <= most && length <= n_starts; length++) {
            const size_t start = starts[(n_starts - length) & 3];
            count_characters(reading, word + start, i - start);
        }
        starts[n_starts++ & 3] = i;
    }
}

/* Count a word, or the parts of one of a script whose words are cut. */
static void count_word(struct reading *reading, const u32 *word, size_t n, int is_cut)
{
    size_t n_vowels = 0;
    u32 crc = 0xffffffffu;
    if (is_cut && has(word[0], IS_UNSPACED)) {
        count_clusters(reading, word, n, 1, 3);
        return;
    }
    count_characters(reading, word, n);
    if (!is_cut)
        return;
    if (n > 2 && has(word[0], IS_SYLLABIC)) {
        count_clusters(reading, word, n, 2, 2);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        if (has(word[i], IS_VOWEL))
            n_vowels++;
        else
            crc = with_character(crc, word[i]);
    }
    if (n_vowels && n_vowels < n)
        count(reading, crc);
}

/* Count the runs of characters of a line in capitals, with spaces around. */
static void count_runs(struct reading *reading, const u32 *line, size_t n)
{
    u32 run[RUN_LENGTH] = {0}, more[4];
    size_t n_characters = 0;
    for (size_t i = 0; i < n + 2; i++) {
        const u32 c = i && i <= n ? line[i - 1] : ' ';
        size_t n_more = 1;
        if (c < 0x80)
            more[0] = c - 'a' < 26 ? c - 32 : c;
        else
            n_more = mapped(&uppers, c, more);
        for (size_t j = 0; j < n_more; j++) {
            for (int k = 1; k < RUN_LENGTH; k++)
                run[k - 1] = run[k];
            run[RUN_LENGTH - 1] = more[j];
            if (++n_characters >= RUN_LENGTH)
                count_characters(reading, run, RUN_LENGTH);
        }
    }
}

/* Count the words of a line with spaces between, and the pairs of them of a short text. */
static void count_words(struct reading *reading, const u32 *line, size_t n, int is_short)
{
    size_t start = 0, before = 0;
    int is_cut = 0;
    for (size_t i = 0; i < n; i++)
        is_cut |= line[i] >= FIRST_CUT && (!i || line[i - 1] == ' ');
    for (size_t i = 0; i <= n && n; i++) {
        if (i < n && line[i] != ' ')
            continue;
        count_word(reading, line + start, i - start, is_cut);
        if (is_short && before < start)
            count_characters(reading, line + before, i - before);
        before = start;
        start = i + 1;
    }
}

/* ---- scores --------------------------------------------------------------------------------- */

/* Return the places of the table for a line of n characters: twice the most features, or more. */
static size_t places_for(size_t n)
{
    const size_t most = n < N_FEATURES / 7 ? 7 * n + 7 : N_FEATURES + 1;
    size_t places = 16;
    while (places < 2 * most)
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

/* Write the sum of levels of each class; return the squared length of the text. */
static u64 add_up(const struct reading *reading, int is_short, i64 *scores)
{
    u64 square = reading->n_unknown * ONE * ONE;
    for (int i = 0; i < N_CLASSES; i++)
        scores[i] = 0;
    for (size_t j = 0; j < reading->n_used; j++) {
        const u32 *feature = reading->table[reading->used[j]];
        const u32 times = is_short ? ONE : damped(feature[1]);
        u64 at = feature[0];
        u32 n = lowest(bits_from(records, at) >> REST_BITS, COUNT_BITS);
        square += (u64)times * times;
        for (at += REST_BITS + COUNT_BITS; n; n--, at += ENTRY_BITS) {
            const u64 entry = bits_from(records, at);
            scores[lowest(entry, OWNER_BITS)] +=
                (i64)times * levels[lowest(entry >> OWNER_BITS, CODE_BITS)];
        }
    }
    return square;
}

/* Return whether a text of n characters is short among those that were learnt. */
static int is_short_text(size_t n)
{
    return HAS_SHORT && N_CHARACTERS + (u64)n <= (u64)SHORT_TEXT * (N_TEXTS + 1);
}

/* Write the score of each class of a text; return its squared length. */
static u64 score(const char *text, size_t n, i64 *scores, u32 *scratch)
{
    u32 *const characters = scratch, *const line = scratch + 12 * n + 16;
    const size_t length = decode((const u8 *)text, n, characters);
    const int is_short = is_short_text(length);
    struct reading reading = {0};
    int is_plain;
    size_t n_line = folded(characters, length, line, characters + 6 * n + 8, &is_plain);
    n_line = units_of(line, n_line, is_plain, characters);
    reading.table = (u32(*)[2])(line + 6 * n + 8);
    reading.last = (u32)(places_for(n_line) - 1);
    reading.used = (u32 *)(reading.table + reading.last + 1);
    for (size_t i = 0; i <= reading.last; i++)
        reading.table[i][0] = reading.table[i][1] = 0;
    count_words(&reading, characters, n_line, is_short);
    if (is_short)
        count_runs(&reading, characters, n_line);
    return add_up(&reading, is_short, scores);
}

static int best_of(const i64 *scores)
{
    int best = 0;
    for (int i = 1; i < N_CLASSES; i++)
        if (scores[i] > scores[best])
            best = i;
    return best;
}

/* ---- what others call ----------------------------------------------------------------------- */

size_t NAME_scratch(size_t n)
{
    return 8 * N_CLASSES + 4 * (18 * n + 24) + 12 * places_for(12 * n);
}

int NAME_predict(const char *text, size_t n, void *scratch, double *probability)
{
    i64 *const scores = scratch;
    const u64 square = score(text, n, scores, (u32 *)(scores + N_CLASSES));
    const int best = best_of(scores);
    const double scale = INVERSE / root((double)square);
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
    const u64 square = score(text, n, scores, (u32 *)(scores + N_CLASSES));
    const i64 most = scores[best_of(scores)];
    const double scale = INVERSE / root((double)square);
    double sum = 0;
    for (int i = 0; i < N_CLASSES; i++)
        sum += probabilities[i] = power((double)(scores[i] - most) * scale);
    for (int i = 0; i < N_CLASSES; i++)
        probabilities[i] = (1 - LAPSE) * probabilities[i] / sum + LAPSE / N_CLASSES;
}
