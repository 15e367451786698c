#ifndef AFZ_VERDICT_H
#define AFZ_VERDICT_H
/* What happened, in one sentence with evidence, and the one thing to change. `why --json` prints
 * these (schema 1); docs/verdicts.md tells what each id means and from when on it is said. */
#include <stdbool.h>
#include <stdint.h>

#include "hold.h"

enum {
        AFZ_VERDICTS_MAX = 8,
        AFZ_VERDICT_ID_CAP = 32,
        AFZ_EVIDENCE_MAX = 6,
        AFZ_EVIDENCE_CAP = 200
};

/* How much it matters: verdicts are told in the order of their levels, causes before symptoms. */
enum afz_level { AFZ_LEVEL_UNKNOWN, AFZ_LEVEL_OK, AFZ_LEVEL_WARN, AFZ_LEVEL_ACT, AFZ_LEVELS };
const char *afz_level_name(enum afz_level level); /* "unknown", "ok", "warn", "act" */

/* A place in the user's own program. */
struct afz_where {
        char file[160]; /* "": not known */
        int32_t line;   /* 0: not known; the file is then the program, its function may be known */
        char function[96];
};

struct afz_verdict {
        char id[AFZ_VERDICT_ID_CAP]; /* "leak", "host-exhaustion" */
        enum afz_level level;
        double confidence;       /* 0 to 1: of those said at 0.9, nine in ten are right */
        uint32_t from_ms, to_ms; /* of the run: where to look in the report; 0, 0: all of it */
        char summary[256];       /* one sentence, no full stop; plain words */
        char fix[256];           /* what to change; "" where there is nothing to do */
        struct afz_where where;
        char evidence[AFZ_EVIDENCE_MAX][AFZ_EVIDENCE_CAP]; /* "" where there is less */
        char caused_by[AFZ_VERDICT_ID_CAP]; /* the verdict in the same list that explains it; "" */
};

/* What the guard knew at the end, beside the recording: what the judges of endings need. Plain
 * data; kept in the run's page. */
struct afz_facts {
        struct afz_end end;
        uint32_t stop_cause;       /* enum afz_cause: why the ladder stopped it; NONE: it did not */
        bool storm;                /* it was about the number of processes */
        bool watch_only;           /* --policy watch: no budget */
        bool timed_out;            /* its time was over, and it was told to end (demo --time) */
        int32_t checkpoint_signal; /* --checkpoint-signal; 0: none */
        uint32_t parts_stopped;    /* of a server */
        uint32_t attempt;          /* restarts so far, with the plan of the last one */
        uint64_t batch, accum;
        uint64_t hard_bytes;       /* what it may use, swap included */
        uint64_t stop_need_bytes;  /* when it was stopped */
        int64_t slope_bytes_per_s; /* then */
        struct {
                uint64_t pid, bytes;
                char name[32];
        } largest; /* of the job's processes; pid 0: not known */
        struct {
                uint64_t grown_bytes;
                char name[32];
        } other;             /* the program outside the job that grew most; 0: none */
        char saved[160];     /* what the checkpoint came to; "": there was none */
        char not_again[128]; /* why it was not started again though it might have been; "" */
};

struct afz_outcome {
        struct afz_end end;
        unsigned verdicts;
        struct afz_verdict verdict[AFZ_VERDICTS_MAX]; /* strongest first */
};

void afz_verdict_set(struct afz_verdict *verdict, const char *id, enum afz_level level,
                     double confidence);

/* A new verdict at the end of the list, with id, level and confidence set; NULL when it is full. */
struct afz_verdict *afz_outcome_add(struct afz_outcome *outcome, const char *id,
                                    enum afz_level level, double confidence);

/* The words for a run whose end nobody saw, for all who tell of one. `held`: in a cgroup, which
 * stays when the guard dies. `sign`: what a machine that went down was like ("it was very hot"), or
 * NULL. */
void afz_verdict_lost(struct afz_verdict *verdict, bool held);
void afz_verdict_machine_lost(struct afz_verdict *verdict, const char *sign);

/* Makes one that came from a file safe: texts end, numbers are in range. */
void afz_outcome_check(struct afz_outcome *outcome);
void afz_facts_check(struct afz_facts *facts);

/* One more line of evidence; what finds no room is dropped. */
__attribute__((format(printf, 2, 3))) void afz_verdict_note(struct afz_verdict *verdict,
                                                            const char *format, ...);

/* "hang:spin" is of the family "hang", and so is "hang". */
bool afz_verdict_is_of(const char *id, const char *family);
/* The first of a family; NULL: none is there. */
const struct afz_verdict *afz_outcome_find(const struct afz_outcome *outcome, const char *family);

#endif
