#ifndef AFZ_CONTROL_H
#define AFZ_CONTROL_H
/* The control socket: how the job's own code (an agent, a script) and `antifreeze set` speak with
 * the guard. The protocol is lines of text in packets (SOCK_SEQPACKET), see docs/control-socket.md.
 *
 * It lives in the guard's tick: a fixed number of clients, nothing allocated after start, never
 * blocking. Only our own user (and root) is answered, whatever the file modes say. A client that
 * writes nonsense gets one line and is closed; so is one that does not read its answers.
 *
 * Whoever writes to it may be hostile. A flood costs a bounded number of packets a turn and a
 * second (the thresholds are in control.c). Descriptors that a client attaches never become ours,
 * and are never even let go by us: the last close of a file can block for as long as its sender
 * wishes (a TCP socket with SO_LINGER does), so such a client is set aside, unread, until the guard
 * ends.
 */
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent_event.h"
#include "ladder.h"

enum {
        AFZ_CONTROL_CLIENTS = 16,
        AFZ_CONTROL_POLLS = AFZ_CONTROL_CLIENTS + 1, /* descriptors to wait for, at most */
        AFZ_CONTROL_LINE = 1024,                     /* a line and its NUL */
};

struct afz_control;

/* What the guard does for a client. set and status return 0, or -errno with a reason in `ret_text`;
 * on success ret_text is the answer ("" for plain "ok"). Texts are cut to fit a line and made
 * printable here. Each may be NULL: "error not offered here". */
struct afz_control_calls {
        /* which: AFZ_CONTROL_SET_*; bytes. Never asked for on behalf of the job itself. */
        int (*set)(void *ctx, int which, uint64_t bytes, char *ret_text, size_t cap);
        /* One JSON object on one line. */
        int (*status)(void *ctx, char *ret_text, size_t cap);
        /* Whether this process is of the job; true as well when that cannot be told. NULL: every
         * process counts as of the job. */
        bool (*is_job)(void *ctx, pid_t pid);
        /* Somebody said hello, or said it anew: AFZ_ABILITY_* of control_line.h. */
        void (*hello)(void *ctx, uint32_t abilities);
        /* A checkpoint is on disk at this absolute path, whether or not it was asked for. */
        void (*saved)(void *ctx, const char *path);
        /* Somebody that said hello tells of what it met or did; text: see agent_event.h, with its
         * NUL. Nothing is answered. */
        void (*event)(void *ctx, enum afz_agent_event event, const char *text);
        void *ctx;
};
enum { AFZ_CONTROL_SET_BUDGET, AFZ_CONTROL_SET_SWAP };

/* Listens at `path`, which must not exist, in a folder that is ours and closed to others (-EPERM
 * when it is not; -ENAMETOOLONG beyond the kernel's 107 bytes). The socket has mode 0600. `run_id`
 * is copied, `calls` too. */
int afz_control_new(const char *path, const char *run_id, const struct afz_control_calls *calls,
                    struct afz_control **ret);
void afz_control_free(struct afz_control *control); /* unlinks the socket; NULL is fine */

/* Descriptors to wait for; returns how many were filled in (at most AFZ_CONTROL_POLLS, the one that
 * hears new clients first). None after a flood, until time has passed: the guard shall not be woken
 * by it, and calls turn at its own next look. */
size_t afz_control_poll(const struct afz_control *control, struct pollfd *ret, size_t cap);
/* Serves what is ready; call after every wait, whatever woke it. */
void afz_control_turn(struct afz_control *control, uint64_t now_ns);

/* Somebody has said that it can save. */
bool afz_control_can_checkpoint(const struct afz_control *control);
/* Asks all that can; returns how many were asked. The answer is afz_control_ack(): ASKED or SAVING
 * while somebody has neither saved, refused nor gone; then SAVED when at least one has saved, else
 * CANNOT. NONE when nobody was ever asked. */
int afz_control_ask_checkpoint(struct afz_control *control, uint64_t timeout_ms);
enum afz_ack afz_control_ack(const struct afz_control *control);
/* Where it was saved, and why somebody could not: the first answer to the last request. Printable;
 * "" for none. */
const char *afz_control_saved_path(const struct afz_control *control);
const char *afz_control_refusal(const struct afz_control *control);

/* Somebody has said that it can use less; and that it can make its steps smaller, which is more: it
 * gets over memory that is refused, and can be started with smaller ones. */
bool afz_control_can_shrink(const struct afz_control *control);
bool afz_control_can_split(const struct afz_control *control);
/* Asks all that can to use less memory; nothing is answered. Returns how many were asked. */
int afz_control_ask_shrink(struct afz_control *control);

/* Tells everybody that said hello one line ("stop budget ..."): words for the user inside the
 * program. Made printable and cut to fit. */
void afz_control_tell(struct afz_control *control, const char *line);

/* The other side, for `antifreeze set`: connects, sends one line, waits for the answer. Blocking,
 * at most timeout_ms. `ret` gets what stands behind "ok" or "status". -EPROTO: the guard refused,
 * and `ret` says why, in its words. -ENOENT, -ECONNREFUSED: no guard there; -EACCES: it is not
 * ours; -ETIMEDOUT; -ECONNRESET: it hung up. */
int afz_control_request(const char *path, const char *line, char *ret, size_t cap, int timeout_ms);

#endif
