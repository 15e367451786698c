/* Masks of the files of one process. */
#include <string.h>

#include "capture_known.h"
#include "capture_mask.h"
#include "count_of.h"

/* The next of several words with a NUL behind each; the last may lack it. False at the end. */
static bool take_argument(struct afz_span *text, struct afz_span *ret, bool *ret_whole)
{
        if (text->n == 0)
                return false;
        *ret_whole = afz_span_take_until(text, '\0', ret) == 0;
        if (!*ret_whole) {
                *ret = *text;
                *text = (struct afz_span){text->p + text->n, 0};
        }
        return true;
}

/* The known start of a word and a mask for the rest, with the ending of a script. */
static void mask_rest(const struct afz_mask *mask, struct afz_span word, size_t known,
                      struct afz_out *out)
{
        static const char *const endings[] = {".py", ".sh"};
        const char *ending = "";
        for (size_t i = 0; i < AFZ_COUNT_OF(endings); i++)
                if (afz_span_ends(word, endings[i]))
                        ending = endings[i];
        afz_out_bytes(out, word.p, known);
        if (known + strlen(ending) < word.n)
                afz_mask_word(mask, word, out);
        if (known < word.n)
                afz_out_str(out, ending);
}

static bool is_option_name(struct afz_span name)
{
        enum { LONGEST = 40 }; /* no option is longer; a key that was pasted may be */
        if (name.n == 0 || name.n > LONGEST)
                return false;
        for (size_t i = 0; i < name.n; i++) {
                char c = name.p[i];
                bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
                if (!letter && !(c >= '0' && c <= '9') && c != '-' && c != '_' && c != '.')
                        return false;
        }
        return true;
}

/* "--name=value" keeps its name, "-p" is kept, of "-psecret" only "-p". */
static void mask_option(const struct afz_mask *mask, struct afz_span word, struct afz_out *out)
{
        bool is_long = afz_span_starts(word, "--");
        const char *equals = memchr(word.p, '=', word.n);
        size_t name_end = equals ? (size_t)(equals - word.p) : word.n;
        size_t dashes = is_long ? 2 : 1;
        if (!is_long && word.n > 2)
                name_end = 2;
        struct afz_span name = {word.p + dashes, name_end - dashes};
        if (word.n > dashes && !is_option_name(name))
                name_end = dashes;
        afz_out_bytes(out, word.p, name_end);
        if (is_long && equals && name_end > dashes) {
                afz_out_char(out, '=');
                name_end++;
        }
        if (name_end < word.n)
                afz_mask_word(mask, word, out);
}

static void mask_argument(const struct afz_mask *mask, struct afz_span word, struct afz_out *out)
{
        struct afz_span base = afz_span_base_name(word);
        size_t known = afz_known_program(base);
        if (known > 0)
                mask_rest(mask, base, known, out);
        else
                mask_rest(mask, word, 0, out);
}

/* What role_guess() looks at stays: the program, a script that is a well-known program, and behind
 * Python's -m and -c what is well known. */
void afz_mask_cmdline(const struct afz_mask *mask, struct afz_span text, struct afz_out *out)
{
        struct afz_span word, before = {"", 0};
        bool whole, python = false;
        for (size_t i = 0; take_argument(&text, &word, &whole); i++, before = word) {
                if (i == 0) {
                        struct afz_span base = afz_span_base_name(word);
                        python = afz_span_starts(base, "python") || afz_span_starts(base, "pypy");
                        mask_argument(mask, word, out);
                } else if (python && afz_span_eq(before, "-m")) {
                        mask_rest(mask, word, afz_known_module(word), out);
                } else if (python && afz_span_eq(before, "-c")) {
                        mask_rest(mask, word, afz_known_code(word), out);
                } else if (afz_span_starts(word, "-")) {
                        mask_option(mask, word, out);
                } else {
                        mask_argument(mask, word, out);
                }
                if (whole)
                        afz_out_char(out, '\0');
        }
}

void afz_mask_environ(const struct afz_mask *mask, struct afz_span text, struct afz_out *out)
{
        struct afz_span word, name;
        bool whole;
        (void)mask;
        while (take_argument(&text, &word, &whole)) {
                struct afz_span value = word;
                uint64_t number;
                if (!whole || afz_span_take_until(&value, '=', &name) < 0 ||
                    !afz_known_variable(name) || afz_span_u64(value, &number) < 0)
                        continue;
                afz_out_bytes(out, name.p, name.n);
                afz_out_fmt(out, "=%llu", (unsigned long long)number);
                afz_out_char(out, '\0');
        }
}

/* Fields of stat, by their numbers in proc(5), that say where in memory things are: with them an
 * attacker of a process that still lives knows what address randomisation hides. The kernel itself
 * shows 0 to those who may not know. */
static bool is_address(int field)
{
        return (field >= 26 && field <= 30) || (field >= 45 && field <= 51);
}

/* Whether the word can stand behind the name: the state's letter, or a number. */
static bool is_stat_word(struct afz_span word, int field)
{
        int64_t negative;
        uint64_t number;
        if (field == 3)
                return word.n == 1;
        return afz_span_u64(word, &number) == 0 || afz_span_i64(word, &negative) == 0;
}

void afz_mask_stat(const struct afz_mask *mask, struct afz_span text, struct afz_out *out)
{
        const char *close = text.n > 0 ? memrchr(text.p, ')', text.n) : NULL;
        struct afz_span comm = text, word;
        uint64_t pid;
        if (!close || afz_span_take_u64(&comm, &pid) < 0 || afz_span_take_prefix(&comm, " (") < 0 ||
            comm.p > close)
                return; /* cut inside the name, or no stat at all */
        struct afz_span rest = {close + 1, text.n - (size_t)(close + 1 - text.p)};
        bool whole = afz_span_ends(rest, "\n");
        comm.n = (size_t)(close - comm.p);
        afz_out_fmt(out, "%llu (", (unsigned long long)pid);
        afz_mask_comm(mask, comm, out);
        afz_out_char(out, ')');
        for (int field = 3; afz_span_take_word(&rest, &word) == 0; field++) {
                /* In a text that was cut, the last ')' may be one of the name's. */
                if (!is_stat_word(word, field))
                        return;
                afz_out_char(out, ' ');
                if (is_address(field))
                        afz_out_char(out, '0');
                else
                        afz_out_bytes(out, word.p, word.n);
        }
        if (whole)
                afz_out_char(out, '\n');
}

void afz_mask_status(const struct afz_mask *mask, struct afz_span text, struct afz_out *out)
{
        struct afz_span line;
        bool whole;
        while (afz_mask_take_line(&text, &line, &whole)) {
                if (afz_span_starts(line, "Groups:"))
                        continue;
                if (afz_span_take_prefix(&line, "Name:\t") == 0) {
                        afz_out_str(out, "Name:\t");
                        afz_mask_comm(mask, line, out);
                } else {
                        afz_out_bytes(out, line.p, line.n);
                }
                if (whole)
                        afz_out_char(out, '\n');
        }
}

void afz_mask_comm_file(const struct afz_mask *mask, struct afz_span text, struct afz_out *out)
{
        bool whole = afz_span_ends(text, "\n");
        if (whole)
                text.n--;
        afz_mask_comm(mask, text, out);
        if (whole)
                afz_out_char(out, '\n');
}

/* Lists of what an epoll or inotify watches, and names of buffers, are nobody's business. */
void afz_mask_fdinfo(const struct afz_mask *mask, struct afz_span text, struct afz_out *out)
{
        static const char *const kept[] = {"pos:", "flags:", "mnt_id:", "ino:", "drm-"};
        struct afz_span line;
        (void)mask;
        while (afz_span_take_line(&text, &line) == 0) {
                if (afz_span_starts(line, "drm-client-name"))
                        continue;
                for (size_t i = 0; i < AFZ_COUNT_OF(kept); i++) {
                        if (!afz_span_starts(line, kept[i]))
                                continue;
                        afz_out_bytes(out, line.p, line.n);
                        afz_out_char(out, '\n');
                        break;
                }
        }
}

/* The first line has addresses (see is_address). */
void afz_mask_smaps(const struct afz_mask *mask, struct afz_span text, struct afz_out *out)
{
        struct afz_span line;
        (void)mask;
        while (afz_span_take_line(&text, &line) == 0) {
                if (afz_span_ends(line, "[rollup]"))
                        line = AFZ_SPAN("00000000-00000000 ---p 00000000 00:00 0 [rollup]");
                afz_out_bytes(out, line.p, line.n);
                afz_out_char(out, '\n');
        }
}
