#ifndef AFZ_CONTROL_LINE_H
#define AFZ_CONTROL_LINE_H
/* One packet from a client of the control socket, taken apart. Pure and strict: all of it is
 * understood or none of it. The grammar is in docs/control-socket.md; its rows are in
 * control_line.c.
 *
 * A packet is one line of UTF-8 without control characters; one newline at its end is allowed, so
 * that `echo | socat` works.
 */
#include <stdint.h>

#include "agent_event.h"
#include "span.h"

enum { AFZ_CONTROL_VERSION = 1, AFZ_CONTROL_NAME_MAX = 32 };

enum afz_control_verb {
        AFZ_CONTROL_HELLO,  /* name, number: version, abilities */
        AFZ_CONTROL_SAVING, /* number: of the request */
        AFZ_CONTROL_SAVED,  /* number; text: where, may be empty */
        AFZ_CONTROL_CANNOT, /* number; text: why, not empty */
        AFZ_CONTROL_SET,    /* which, number: bytes */
        AFZ_CONTROL_STATUS,
        AFZ_CONTROL_EVENT, /* event; text: its keys and its sentence (agent_event.h), may be empty
                            */
        AFZ_CONTROL_VERBS
};

enum {
        AFZ_ABILITY_CHECKPOINT = 1U << 0,
        AFZ_ABILITY_SHRINK = 1U << 1, /* to make steps smaller, also one that was refused memory */
        AFZ_ABILITY_LESS = 1U << 2,   /* to use less, and nothing beyond that: a data loader */
};

struct afz_control_line {
        enum afz_control_verb verb;
        uint64_t number;
        uint32_t abilities;
        int which;                  /* AFZ_CONTROL_SET_* */
        enum afz_agent_event event; /* what is told */
        struct afz_span name, text; /* borrowed from the packet */
};

/* -EINVAL: nonsense. -EPROTONOSUPPORT: a hello of another version. In both cases *ret_why is a
 * sentence for the client. */
int afz_control_line_parse(struct afz_span packet, struct afz_control_line *ret,
                           const char **ret_why);

#endif
