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
