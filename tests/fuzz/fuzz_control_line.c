/* Any bytes as a packet of the control socket: no crash, nothing set on failure, a reason for every
 * refusal, and what is taken is printable and lies inside the packet. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "control.h"
#include "control_line.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int holds)
{
        if (!holds)
                abort();
}

static void check_text(struct afz_span text, struct afz_span packet)
{
        char copy[AFZ_CONTROL_LINE];
        if (text.n == 0)
                return;
        require(text.p >= packet.p && text.p + text.n <= packet.p + packet.n);
        require(text.n < sizeof copy);
        /* The copy replaces what could speak to a terminal: there is nothing of that. */
        require(afz_span_copy(text, copy, sizeof copy) == text.n);
        require(memcmp(copy, text.p, text.n) == 0);
}

/* What is asked of a text later is inside it, and a number is what stands there. */
static void check_event(const struct afz_control_line *line)
{
        static const char *const keys[] = {"step", "batch", "at", "a", ""};
        require((unsigned)line->event < AFZ_AGENT_EVENTS && afz_agent_event_is_text(line->text));
        check_text(afz_agent_event_sentence(line->text), line->text);
        for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
                struct afz_span value = {0};
                uint64_t number, same;
                if (!afz_agent_event_value(line->text, keys[i], &value))
                        continue;
                check_text(value, line->text);
                if (afz_agent_event_number(line->text, keys[i], &number))
                        require(afz_span_u64(value, &same) == 0 && same == number);
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct afz_span packet = {(const char *)data, size};
        struct afz_control_line line, before;
        const char *why = NULL;

        if (size >= AFZ_CONTROL_LINE)
                return 0;
        memset(&line, 0x5a, sizeof line);
        memcpy(&before, &line, sizeof line);
        int r = afz_control_line_parse(packet, &line, &why);
        if (r < 0) {
                require(r == -EINVAL || r == -EPROTONOSUPPORT);
                require(why && *why && memcmp(&line, &before, sizeof line) == 0);
                return 0;
        }
        require((unsigned)line.verb < AFZ_CONTROL_VERBS);
        require(line.verb != AFZ_CONTROL_HELLO || (line.name.n > 0 && line.number == 1));
        require(line.verb != AFZ_CONTROL_CANNOT || line.text.n > 0);
        require(line.which == AFZ_CONTROL_SET_BUDGET || line.which == AFZ_CONTROL_SET_SWAP);
        check_text(line.name, packet);
        check_text(line.text, packet);
        if (line.verb == AFZ_CONTROL_EVENT)
                check_event(&line);
        return 0;
}
