#include "agent_event.h"

#include <string.h>

#include "out.h"
#include "quantity.h"

static const char *const names[AFZ_AGENT_EVENTS] = {
        [AFZ_AGENT_OOM] = "oom",       [AFZ_AGENT_SPLIT] = "split",   [AFZ_AGENT_GROW] = "grow",
        [AFZ_AGENT_REFUSE] = "refuse", [AFZ_AGENT_RESUME] = "resume", [AFZ_AGENT_NOTE] = "note",
        [AFZ_AGENT_SITES] = "sites",   [AFZ_AGENT_FEED] = "feed",     [AFZ_AGENT_ERROR] = "error",
};

const char *afz_agent_event_name(enum afz_agent_event event)
{
        return (unsigned)event < AFZ_AGENT_EVENTS ? names[event] : "";
}

enum afz_agent_event afz_agent_event_of(struct afz_span name)
{
        for (unsigned i = 0; i < AFZ_AGENT_EVENTS; i++)
                if (afz_span_eq(name, names[i]))
                        return (enum afz_agent_event)i;
        return AFZ_AGENT_NOTE;
}

/* The keys, and the sentence behind them: a colon, and a blank or the end. */
static struct afz_span cut(struct afz_span text, struct afz_span *ret_sentence)
{
        for (size_t i = 0; i < text.n; i++)
                if (text.p[i] == ':' && (i + 1 == text.n || text.p[i + 1] == ' ')) {
                        *ret_sentence =
                                afz_span_trim((struct afz_span){text.p + i + 1, text.n - i - 1});
                        return afz_span_trim((struct afz_span){text.p, i});
                }
        *ret_sentence = (struct afz_span){text.p + text.n, 0};
        return afz_span_trim(text);
}

/* Of a word that begins with a key and '=': the key's length; else 0. */
static size_t key_length(struct afz_span word)
{
        size_t n = 0;
        while (n < word.n && ((word.p[n] >= 'a' && word.p[n] <= 'z') || word.p[n] == '_'))
                n++;
        return n < word.n && word.p[n] == '=' ? n : 0;
}

/* The next key with its value; false at the end, or where something else stands. */
static bool take_pair(struct afz_span *rest, struct afz_span *ret_key, struct afz_span *ret_value)
{
        struct afz_span word, left = *rest;
        if (afz_span_take_word(&left, &word) < 0)
                return false;
        size_t n = key_length(word);
        if (n == 0)
                return false;
        const char *end = word.p + word.n;
        for (struct afz_span at = left; afz_span_take_word(&at, &word) == 0; left = at) {
                if (key_length(word) > 0)
                        break;
                end = word.p + word.n;
        }
        const char *key = afz_span_trim(*rest).p;
        *ret_key = (struct afz_span){key, n};
        *ret_value = (struct afz_span){key + n + 1, (size_t)(end - key) - n - 1};
        *rest = left;
        return true;
}

bool afz_agent_event_is_text(struct afz_span text)
{
        struct afz_span sentence, key, value, keys = cut(text, &sentence);
        while (take_pair(&keys, &key, &value))
                ;
        return afz_span_trim(keys).n == 0;
}

bool afz_agent_event_value(struct afz_span text, const char *key, struct afz_span *ret)
{
        struct afz_span sentence, name, value, keys = cut(text, &sentence);
        while (take_pair(&keys, &name, &value))
                if (afz_span_eq(name, key)) {
                        *ret = value;
                        return true;
                }
        return false;
}

bool afz_agent_event_number(struct afz_span text, const char *key, uint64_t *ret)
{
        struct afz_span value;
        return afz_agent_event_value(text, key, &value) && afz_span_u64(value, ret) == 0;
}

const char *afz_agent_event_oom_words(struct afz_span text, char *buf, size_t cap)
{
        struct afz_out out = afz_out_to(-1, buf, cap - 1);
        struct afz_span device;
        char size[AFZ_SIZE_TEXT_CAP];
        uint64_t n, swallowed = 0;
        bool gpu = afz_agent_event_value(text, "device", &device) && afz_span_eq(device, "gpu");
        afz_out_str(&out, gpu ? "the GPU's memory ran out" : "memory ran out");
        if (afz_agent_event_number(text, "step", &n) && n > 0)
                afz_out_fmt(&out, " in step %llu", (unsigned long long)n);
        if ((afz_agent_event_number(text, "micro", &n) ||
             afz_agent_event_number(text, "batch", &n)) &&
            n > 0)
                afz_out_fmt(&out, ", with %llu sample%s at once", (unsigned long long)n,
                            n == 1 ? "" : "s");
        if (afz_agent_event_number(text, "asked_bytes", &n) && n > 0)
                afz_out_fmt(&out, ": %s were asked for", afz_format_size(size, sizeof size, n));
        if (afz_agent_event_number(text, "swallowed", &swallowed) && swallowed)
                afz_out_str(&out, "; the program caught the error");
        buf[out.len] = '\0';
        return buf;
}

struct afz_span afz_agent_event_sentence(struct afz_span text)
{
        struct afz_span sentence;
        (void)cut(text, &sentence);
        return sentence;
}
