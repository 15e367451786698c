#ifndef AFZ_AGENT_EVENT_H
#define AFZ_AGENT_EVENT_H
/* What the agent inside of the job tells of what it met and did: a kind, figures by their names,
 * and a sentence for people. It comes over the control socket (docs/control-socket.md) and is kept
 * in the recording as AFZ_MARK_AGENT, with the kind as its code and the rest as its text:
 *
 *         device=host step=12 batch=64 at=/home/me/my nets/train.py:33:loss: what it means
 *
 * A value goes on to the next word that is a KEY=, so that paths may have blanks in them; the
 * sentence begins behind the first ": ". Pure: nothing here allocates.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "span.h"

enum afz_agent_event {
        AFZ_AGENT_OOM,    /* memory was refused: device= step= batch= asked_bytes= allocated_bytes=
                             reserved_bytes= at=FILE:LINE:FUNCTION swallowed=; trains=1: no step was
                             made    yet, and there is an optimizer */
        AFZ_AGENT_SPLIT,  /* a step is made in parts from now on: step= batch= micro= */
        AFZ_AGENT_GROW,   /* in fewer parts again: the same */
        AFZ_AGENT_REFUSE, /* something is not done; why is in the sentence. what=split: steps are
                             not made smaller, restart=1: unless it is started anew */
        AFZ_AGENT_RESUME, /* it goes on from a checkpoint: step= */
        AFZ_AGENT_NOTE,   /* anything else; kinds that we do not know, too */
        AFZ_AGENT_SITES,  /* the lines that held a GPU's memory when it ran out just now: device=
                             total_bytes= a_at=FILE:LINE:FUNCTION a_bytes= b_at= b_bytes= ... */
        AFZ_AGENT_FEED,   /* what limited the data loader in an epoch so far: limit= (consumer,
                             disk, cache, decode, gather, transform) epoch= epoch_ms= waited_ms=
                             threads= held= copies= */
        AFZ_AGENT_ERROR,  /* one that nobody caught ended the program: at=FILE:LINE:FUNCTION; what
                             it says is the sentence */
        AFZ_AGENT_EVENTS
};

const char *afz_agent_event_name(enum afz_agent_event event); /* "oom"; "" for none */
enum afz_agent_event afz_agent_event_of(struct afz_span name);

/* Whether a text is of that form. "" is. */
bool afz_agent_event_is_text(struct afz_span text);

/* The value of a key, the first where there are several. False: it is not there, or is no whole
 * number. */
bool afz_agent_event_value(struct afz_span text, const char *key, struct afz_span *ret);
bool afz_agent_event_number(struct afz_span text, const char *key, uint64_t *ret);

/* An OOM as a sentence of ours, for it has none of its own: "the GPU's memory ran out in step 12,
 * with 64 samples at once: 2.5G were asked for; the program caught the error". Returns buf. */
const char *afz_agent_event_oom_words(struct afz_span text, char *buf, size_t cap);

/* What is for people; empty: nothing. */
struct afz_span afz_agent_event_sentence(struct afz_span text);

#endif
