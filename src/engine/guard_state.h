#ifndef AFZ_GUARD_STATE_H
#define AFZ_GUARD_STATE_H
/* The guard's own state, shared by the files guard*.c and by nobody else:
 *
 *   guard.c          its life: set up, wait, tick, clean up
 *   guard_start.c    one attempt: spawn, contain, let go
 *   guard_signals.c  signals and children: what is passed on, what was reaped
 *   guard_tick.c     one look and what follows from it
 *   guard_do.c       the deeds of the ladder
 *   guard_parts.c    a server's jobs, each for itself
 *   guard_picture.c  the moment before it is stopped
 *   guard_probe.c    the probe in the job, and its keeper
 *   guard_agent.c    the agent in the job: what it is given, and what it tells of
 *   guard_record.c   what of it goes into the recording
 *   guard_restart.c  whether there is another attempt
 *   guard_hindsight.c  what the judges say of the last one
 *   guard_words.c    sentences for people, verdicts for the record
 */
#include "checkpoint.h"
#include "control.h"
#include "env.h"
#include "guard.h"
#include "hindsight.h"
#include "hold_tier.h"
#include "host_pulse.h"
#include "keeper.h"
#include "ladder.h"
#include "proc_read.h"
#include "quantity.h"
#include "recorder.h"
#include "restart_plan.h"
#include "scout.h"
#include "space.h"
#include "spawn_held.h"
#include "stop.h"

#define AFZ_GUARD_SIGNALS 65

/* A job of a server. */
struct afz_guard_part {
        uint64_t pid, start_ticks;
        char name[AFZ_SCOUT_PART_NAME]; /* the notebook's; "": not known */
        bool over;                      /* we have stopped it */
};

/* One that is being stopped: first it gets words and time to pass them on, then it is killed, then
 * its memory comes back. The ladder stands still meanwhile. */
struct afz_guard_ending {
        bool on, killed;
        bool by_system; /* the kernel did, at our limit; which one is not known yet */
        unsigned part;
        uint64_t until_ns;
        uint64_t need_bytes; /* of all, when it began */
};

/* What passes between us and the agent. */
struct afz_guard_agent {
        /* Of its environment. */
        char attempt[40], gpu_budget[48], lean[32], resume[AFZ_CONTROL_LINE + 24];

        struct afz_restart_facts now; /* of this attempt */
        bool refused;                 /* in it, to make steps smaller */
        char saved[AFZ_CONTROL_LINE]; /* the last checkpoint of any attempt; "": none */
        uint64_t oom_ns;              /* when it was refused memory and did not get over it;
                                         0: never */
        uint64_t base_step; /* which one this attempt went on from; its own count begins anew */
        uint64_t lost_ns;   /* when one of several that train together was lost; 0: none */
        uint64_t lost_step; /* which one they were at then */
        bool gave_up;       /* on those that were left: they waited for it */
        uint64_t said_ns[AFZ_AGENT_EVENTS]; /* when one of the kind was last said; 0: never */
        /* Recording events is paid for with the time up to here; errors have their own. */
        uint64_t spent_ns, spent_for_errors_ns;
        bool told_unsaved;
};

struct afz_guard {
        const struct afz_guard_order *order;
        struct afz_run *run;
        int front_fd; /* -1: the front is gone */
        int front_pidfd;
        int signal_fd; /* all signals */
        struct afz_env env;
        struct afz_host_pulse host;
        struct afz_recorder *recorder; /* NULL: nothing is recorded */
        struct afz_scout *scout;
        struct afz_keeper *keeper;   /* NULL: no probe is in the job */
        struct afz_control *control; /* NULL: no socket could be made */
        struct afz_checkpoint checkpoint;

        /* The present attempt. */
        struct afz_restart_plan plan;
        struct afz_hindsight hindsight; /* of the attempt before; zeros: none, or not known */
        char not_again[128];            /* why there is no other after this one; "": as ever */
        char id[AFZ_RUN_ID_CAP +
                8]; /* of the hold: the run's, and the attempt from the second on */
        struct afz_spawn spawn;
        struct afz_hold hold;
        struct afz_budget budget;
        uint64_t promised_bytes; /* that the budget was last reckoned with */
        struct afz_lines lines;
        struct afz_ladder ladder;
        struct afz_guard_agent agent;
        bool server; /* jobs below it may be stopped alone */
        uint64_t oom_kills_seen;

        /* What is known now. */
        struct afz_pulse pulse;
        struct afz_decision decision;
        struct afz_scout_report report;
        uint64_t report_count; /* the last one that was looked at */
        enum afz_ack ack;      /* of the last checkpoint request */
        uint64_t slow_next_ns;
        uint64_t share_next_ns; /* when it may be said again that others share the machine */
        uint64_t wake_ns;

        /* How it goes. */
        bool braked;        /* by us, now */
        bool user_stopped;  /* Ctrl-Z */
        bool root_ended;    /* CMD was reaped, or the attached root is gone */
        int root_status;    /* as of waitid: exit status or signal */
        bool root_signaled; /* by a signal */
        bool detach;
        uint64_t asked_ns;        /* when it was first asked to save or to end; 0: never */
        uint64_t calm_ns;         /* since when it is calm though it was asked to end; 0: not */
        uint64_t stop_ns;         /* when the ladder first killed or asked to end; 0: never */
        uint64_t stop_need_bytes; /* the need then */
        uint64_t gone_ns;         /* when nothing of it was left; 0: something is */
        enum afz_cause stop_cause;
        bool stop_storm;
        uint64_t park_ns, park_need, park_stall_ns; /* the window in which it may be parked */
        bool unparked;                              /* it was, and is not slowed any more */
        uint64_t picture_ns;                        /* since when one is being taken; 0: none is */
        bool slowed;     /* growth beyond the slow line goes at the pace of swap */
        bool killed;     /* SIGKILL was among it */
        bool stop_asked; /* interrupt, terminate or kill was done */
        unsigned parts_stopped;
        struct afz_guard_part part[AFZ_HOLD_PARTS];
        unsigned parts;
        struct afz_guard_ending ending;
        bool limit_lifted;                /* for it; to be set back */
        uint64_t warned_ns, warned_bytes; /* when it was last said that it is near its budget */
        unsigned escapes_told;
        struct afz_space_word space;

        /* Signals: when the group got one, and what the front was sent alone. */
        uint64_t group_ns[AFZ_GUARD_SIGNALS];
        uint64_t forward_ns[AFZ_GUARD_SIGNALS]; /* not before this time; 0: none waits */
        uint64_t unwanted_ns;                   /* when somebody last wanted CMD to end; 0: never */
        bool timed_out;                         /* as its time was over */

        /* What of this is in the recording. */
        struct {
                uint64_t next_ns;     /* of the next look, if nothing happens before */
                struct afz_pulse top; /* since the last one */
                bool braked;
                enum afz_stage stage;
                bool writer_gone; /* by somebody else's hand */
                bool told;        /* that nothing more gets onto the disk */
        } recorded;

        char socket_variable[160], run_variable[64];
        char probe_socket[160], probe_preload[4096], probe_sanitizer[1024]; /* "": no probe */
};

/* guard.c: waits for anything to happen, until then at most. */
void afz_guard_wait(struct afz_guard *g, uint64_t until_ns);

/* guard_start.c: 0, or -errno after a word of failure was sent. */
int afz_guard_start(struct afz_guard *g);
void afz_guard_lock_memory(struct afz_guard *g);
void afz_guard_let_go_of_stdio(void);

/* guard_signals.c */
int afz_guard_signals_open(struct afz_guard *g);
/* Before CMD is forked: what the group got until now CMD will not have, so the front's word is to
 * count. */
void afz_guard_signals_forget(struct afz_guard *g);
void afz_guard_signals_turn(struct afz_guard *g);
void afz_guard_front_turn(struct afz_guard *g);
void afz_guard_reap(struct afz_guard *g);

/* guard_tick.c */
void afz_guard_tick(struct afz_guard *g);
void afz_guard_look(struct afz_guard *g);
bool afz_guard_kernel_killed(const struct afz_guard *g); /* the whole job, at our limit */
void afz_guard_set_budget(struct afz_guard *g, const struct afz_budget *budget);

/* guard_do.c */
void afz_guard_do(struct afz_guard *g, const struct afz_decision *decision);
void afz_guard_release(struct afz_guard *g);
void afz_guard_did(struct afz_guard *g, enum afz_action action);

/* guard_picture.c: neither waits */
void afz_guard_picture(struct afz_guard *g, enum afz_picture picture); /* as the ladder says */
void afz_guard_picture_turn(struct afz_guard *g); /* tells the ladder when it is taken */

/* guard_parts.c */
void afz_guard_split_parts(struct afz_guard *g, const struct afz_scout_report *report);
void afz_guard_warn_part(struct afz_guard *g); /* tells the one that holds most */
/* Begins to stop the one that holds most. False: there is none, all of it has to go. */
bool afz_guard_stop_part(struct afz_guard *g);
void afz_guard_part_killed(struct afz_guard *g); /* the system has stopped one */
bool afz_guard_part_turn(struct afz_guard *g);   /* true: one is being stopped */

/* guard_agent.c */
void afz_guard_agent_open(void); /* before the first attempt */
/* The variables for the next attempt, AFZ_GUARD_AGENT_VARIABLES at most; how many. */
enum { AFZ_GUARD_AGENT_VARIABLES = 7 };
unsigned afz_guard_agent_environment(struct afz_guard *g, const char **ret);
void afz_guard_agent_hello(void *g, uint32_t abilities); /* the calls of control.h */
void afz_guard_agent_saved(void *g, const char *path);
void afz_guard_agent_event(void *g, enum afz_agent_event event, const char *text);
/* What is due now and then: of several that train together, one may be lost. */
void afz_guard_agent_turn(struct afz_guard *g);
void afz_guard_say_unsaved(struct afz_guard *g); /* once, where nobody could save its steps */
void afz_guard_say_lost(struct afz_guard *g);    /* after it was stopped; where steps are known */

/* guard_restart.c */
/* After the end of an attempt, before it is cleaned up: says what is lost if memory ended it, and
 * waits until it is time for another. False: there is none, or nobody wants it. */
bool afz_guard_again(struct afz_guard *g, bool left);
void afz_guard_afresh(struct afz_guard *g); /* nothing of the attempt before is known */

/* guard_hindsight.c: after the end of an attempt. Waits for it, some seconds at most. False:
 * nothing is known. */
bool afz_guard_hindsight(struct afz_guard *g, struct afz_hindsight *ret);

/* guard_record.c: none of these waits, or fails */
void afz_guard_record_open(struct afz_guard *g); /* before anything else is forked */
void afz_guard_record(struct afz_guard *g);      /* the last look, if it is time, or news */
void afz_guard_record_action(struct afz_guard *g, enum afz_action action);
void afz_guard_record_attempt(struct afz_guard *g); /* CMD runs */
void afz_guard_record_agent(struct afz_guard *g, enum afz_agent_event event, const char *text);
void afz_guard_record_said(struct afz_guard *g, const struct afz_word *word);
void afz_guard_record_trouble(struct afz_guard *g); /* says it, once */

/* guard_probe.c */
void afz_guard_probe_open(struct afz_guard *g);  /* before CMD; says why if it has to be without */
void afz_guard_probe_room(struct afz_guard *g);  /* a look: how much may still be taken */
void afz_guard_probe_close(struct afz_guard *g); /* after the keeper's last look */

/* guard_words.c */
void afz_guard_send(struct afz_guard *g, const struct afz_word *word);
void afz_guard_say(struct afz_guard *g, const char *event, bool urgent, const char *format, ...)
        __attribute__((format(printf, 4, 5)));
void afz_guard_fail(struct afz_guard *g, int code, const char *format, ...)
        __attribute__((format(printf, 3, 4)));
void afz_guard_say_started(struct afz_guard *g, const char *lacking);
void afz_guard_say_escape(struct afz_guard *g, const char *name); /* "docker run" */
void afz_guard_say_survivor(struct afz_guard *g, bool ends);
void afz_guard_say_swept(struct afz_guard *g);
void afz_guard_say_ended(struct afz_guard *g, const struct afz_outcome *outcome);
void afz_guard_outcome(const struct afz_guard *g, struct afz_outcome *ret);

/* A size for people, as an argument of printf. */
#define SIZE(bytes) afz_format_size((char[AFZ_SIZE_TEXT_CAP]){0}, AFZ_SIZE_TEXT_CAP, (bytes))

static inline uint64_t afz_guard_now(const struct afz_guard *g)
{
        return afz_env_now(&g->env);
}

#endif
