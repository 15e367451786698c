#include "control_line.h"

#include <errno.h>

#include "control.h"
#include "count_of.h"

/* Bytes of the well-formed UTF-8 character at p, 0 when it is none; overlong forms, surrogates and
 * what is beyond U+10FFFF are none. */
static size_t utf8_length(const unsigned char *p, size_t n)
{
        static const struct {
                unsigned char first_low, first_high, second_low, second_high;
                size_t length;
        } forms[] = {
                {0x00, 0x7f, 0x00, 0x00, 1}, {0xc2, 0xdf, 0x80, 0xbf, 2},
                {0xe0, 0xe0, 0xa0, 0xbf, 3}, {0xe1, 0xec, 0x80, 0xbf, 3},
                {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
                {0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4},
                {0xf4, 0xf4, 0x80, 0x8f, 4},
        };
        for (size_t i = 0; i < AFZ_COUNT_OF(forms); i++) {
                if (p[0] < forms[i].first_low || p[0] > forms[i].first_high)
                        continue;
                size_t length = forms[i].length;
                if (length > n)
                        return 0;
                if (length > 1 && (p[1] < forms[i].second_low || p[1] > forms[i].second_high))
                        return 0;
                for (size_t k = 2; k < length; k++)
                        if ((p[k] & 0xc0) != 0x80)
                                return 0;
                return length;
        }
        return 0;
}

static bool is_text(struct afz_span s)
{
        const unsigned char *p = (const unsigned char *)s.p;
        for (size_t i = 0; i < s.n;) {
                size_t length = utf8_length(p + i, s.n - i);
                /* U+0080 to U+009F are controls as well: C2 9B begins a terminal's escape. */
                if (length == 0 || p[i] < 0x20 || p[i] == 0x7f || (p[i] == 0xc2 && p[i + 1] < 0xa0))
                        return false;
                i += length;
        }
        return true;
}

static bool is_name(struct afz_span s)
{
        for (size_t i = 0; i < s.n; i++) {
                char c = s.p[i];
                if (!(afz_is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                      c == '-' || c == '_' || c == '.'))
                        return false;
        }
        return s.n > 0 && s.n <= AFZ_CONTROL_NAME_MAX;
}

static int take_number(struct afz_span *rest, uint64_t *ret)
{
        struct afz_span word;
        int r = afz_span_take_word(rest, &word);
        return r < 0 ? r : afz_span_u64(word, ret);
}

/* Abilities that we do not know are passed over: an agent may be newer than its guard. */
static int parse_hello(struct afz_span rest, struct afz_control_line *line)
{
        static const struct {
                const char *name;
                uint32_t bit;
        } abilities[] = {
                {"checkpoint", AFZ_ABILITY_CHECKPOINT},
                {"shrink", AFZ_ABILITY_SHRINK},
                {"less", AFZ_ABILITY_LESS},
        };
        struct afz_span word;

        if (afz_span_take_word(&rest, &line->name) < 0 || !is_name(line->name) ||
            take_number(&rest, &line->number) < 0)
                return -EINVAL;
        if (line->number != AFZ_CONTROL_VERSION)
                return -EPROTONOSUPPORT;
        while (afz_span_take_word(&rest, &word) >= 0) {
                if (!is_name(word))
                        return -EINVAL;
                for (size_t i = 0; i < AFZ_COUNT_OF(abilities); i++)
                        if (afz_span_eq(word, abilities[i].name))
                                line->abilities |= abilities[i].bit;
        }
        return 0;
}

static int parse_answer(struct afz_span rest, struct afz_control_line *line)
{
        if (take_number(&rest, &line->number) < 0)
                return -EINVAL;
        line->text = afz_span_trim(rest);
        switch (line->verb) {
        case AFZ_CONTROL_SAVING:
                return line->text.n == 0 ? 0 : -EINVAL;
        case AFZ_CONTROL_CANNOT:
                return line->text.n > 0 ? 0 : -EINVAL;
        default:
                return 0;
        }
}

static int parse_set(struct afz_span rest, struct afz_control_line *line)
{
        struct afz_span what;

        if (afz_span_take_word(&rest, &what) < 0 || take_number(&rest, &line->number) < 0 ||
            afz_span_trim(rest).n > 0)
                return -EINVAL;
        if (afz_span_eq(what, "budget"))
                line->which = AFZ_CONTROL_SET_BUDGET;
        else if (afz_span_eq(what, "swap"))
                line->which = AFZ_CONTROL_SET_SWAP;
        else
                return -EINVAL;
        return 0;
}

static int parse_alone(struct afz_span rest, struct afz_control_line *line)
{
        (void)line;
        return afz_span_trim(rest).n == 0 ? 0 : -EINVAL;
}

/* "note: a sentence" and "oom step=3: a sentence" alike. */
static int parse_event(struct afz_span rest, struct afz_control_line *line)
{
        struct afz_span kind;
        if (afz_span_take_word(&rest, &kind) < 0)
                return -EINVAL;
        if (kind.p[kind.n - 1] == ':') {
                kind.n--;
                rest = (struct afz_span){kind.p + kind.n,
                                         rest.n + (size_t)(rest.p - kind.p) - kind.n};
        }
        if (!is_name(kind))
                return -EINVAL;
        line->event = afz_agent_event_of(kind);
        line->text = afz_span_trim(rest);
        return afz_agent_event_is_text(line->text) ? 0 : -EINVAL;
}

static const struct {
        const char *word;
        int (*parse)(struct afz_span rest, struct afz_control_line *line);
        const char *usage;
} verbs[AFZ_CONTROL_VERBS] = {
        [AFZ_CONTROL_HELLO] = {"hello", parse_hello,
                               "it is: hello NAME 1 [checkpoint] [shrink] [less]"},
        [AFZ_CONTROL_SAVING] = {"saving", parse_answer, "it is: saving N"},
        [AFZ_CONTROL_SAVED] = {"saved", parse_answer, "it is: saved N [PATH]"},
        [AFZ_CONTROL_CANNOT] = {"cannot", parse_answer, "it is: cannot N REASON"},
        [AFZ_CONTROL_SET] = {"set", parse_set, "it is: set budget|swap BYTES"},
        [AFZ_CONTROL_STATUS] = {"status", parse_alone, "it is: status"},
        [AFZ_CONTROL_EVENT] = {"event", parse_event,
                               "it is: event KIND [KEY=VALUE ...][: SENTENCE]"},
};

int afz_control_line_parse(struct afz_span packet, struct afz_control_line *ret,
                           const char **ret_why)
{
        struct afz_span rest = packet, word;

        if (rest.n > 0 && rest.p[rest.n - 1] == '\n')
                rest.n--;
        if (!is_text(rest)) {
                *ret_why = "a packet is one line of UTF-8 text, without control characters";
                return -EINVAL;
        }
        if (afz_span_take_word(&rest, &word) < 0) {
                *ret_why = "an empty line";
                return -EINVAL;
        }
        for (int verb = 0; verb < AFZ_CONTROL_VERBS; verb++) {
                if (!afz_span_eq(word, verbs[verb].word))
                        continue;
                struct afz_control_line line = {.verb = (enum afz_control_verb)verb};
                int r = verbs[verb].parse(rest, &line);
                if (r < 0) {
                        *ret_why = r == -EPROTONOSUPPORT ? "this guard speaks version 1 only"
                                                         : verbs[verb].usage;
                        return r;
                }
                *ret = line;
                return 0;
        }
        *ret_why = "it is one of: hello, saving, saved, cannot, event, set, status";
        return -EINVAL;
}
