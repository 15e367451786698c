#include "checkpoint.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "checkpoint_helper.h"
#include "clock.h"
#include "quantity.h"
#include "span.h"

/* At the end: how long the helper may take to go. It has one kill and one wait to do; when that
 * takes longer it ends without us. */
enum { DONE_TRIES = 200, DONE_TRY_MS = 1 };

int afz_checkpoint_init(struct afz_checkpoint *c, const struct afz_checkpoint_setup *setup)
{
        *c = (struct afz_checkpoint){.setup = *setup, .helper_fd = -1};
        if (!setup->command)
                return 0;
        int r = afz_checkpoint_helper_start(setup->command, &c->helper, &c->helper_fd);
        c->setup.command = NULL;
        return r;
}

static void forget_helper(struct afz_checkpoint *c)
{
        if (c->helper_fd >= 0)
                close(c->helper_fd);
        c->helper_fd = -1;
        c->helper = 0;
}

void afz_checkpoint_done(struct afz_checkpoint *c)
{
        pid_t helper = c->helper;
        forget_helper(c);
        for (int i = 0; helper > 0 && i < DONE_TRIES; i++) {
                pid_t r = waitpid(helper, NULL, WNOHANG);
                if (r == helper || (r < 0 && errno == ECHILD))
                        return;
                (void)poll(NULL, 0, DONE_TRY_MS);
        }
}

static bool has_agent(const struct afz_checkpoint *c)
{
        return c->setup.control && afz_control_can_checkpoint(c->setup.control);
}

bool afz_checkpoint_can(const struct afz_checkpoint *c)
{
        return has_agent(c) || c->helper_fd >= 0 || c->setup.signal != 0;
}

__attribute__((format(printf, 3, 4))) static void settle(struct afz_checkpoint *c, enum afz_ack ack,
                                                         const char *format, ...)
{
        char text[sizeof c->words];
        va_list args;
        va_start(args, format);
        (void)vsnprintf(text, sizeof text, format, args);
        va_end(args);
        (void)afz_span_copy(afz_span_str(text), c->words, sizeof c->words);
        c->ack = ack;
}

static void send_helper(struct afz_checkpoint *c, int32_t value)
{
        struct afz_checkpoint_word word = {c->number, value};
        if (afz_checkpoint_helper_send(c->helper_fd, &word) == -EPIPE)
                forget_helper(c);
}

static bool is_over(enum afz_ack ack)
{
        return ack != AFZ_ACK_ASKED && ack != AFZ_ACK_SAVING;
}

static void give_up(struct afz_checkpoint *c)
{
        if (c->commanded && !is_over(c->ack) && c->helper_fd >= 0)
                send_helper(c, -1);
        c->commanded = false;
        c->words[0] = '\0';
}

void afz_checkpoint_job(struct afz_checkpoint *c, pid_t pid)
{
        give_up(c);
        c->ack = AFZ_ACK_NONE;
        c->job = pid;
}

static bool ask_agents(struct afz_checkpoint *c)
{
        return has_agent(c) &&
               afz_control_ask_checkpoint(c->setup.control, c->setup.wait_ns / AFZ_NS_PER_MS) > 0;
}

enum afz_checkpoint_means afz_checkpoint_ask(struct afz_checkpoint *c, uint64_t now_ns)
{
        give_up(c);
        c->number++;
        c->asked_ns = now_ns;
        c->ack = AFZ_ACK_ASKED;
        if (ask_agents(c)) {
                c->means = AFZ_CHECKPOINT_AGENT;
                return c->means;
        }
        if (c->helper_fd >= 0)
                send_helper(c, c->job);
        c->commanded = c->helper_fd >= 0;
        c->means = c->setup.signal != 0 ? AFZ_CHECKPOINT_SIGNAL
                   : c->commanded       ? AFZ_CHECKPOINT_COMMAND
                                        : AFZ_CHECKPOINT_NOBODY;
        if (c->means == AFZ_CHECKPOINT_NOBODY)
                settle(c, AFZ_ACK_CANNOT, "nobody to ask for a checkpoint");
        return c->means;
}

static void turn_agents(struct afz_checkpoint *c)
{
        const char *path = afz_control_saved_path(c->setup.control);
        const char *why = afz_control_refusal(c->setup.control);
        enum afz_ack ack = afz_control_ack(c->setup.control);
        if (ack == AFZ_ACK_SAVED)
                settle(c, ack, *path ? "saved to %s" : "saved%s", path);
        else if (ack == AFZ_ACK_CANNOT)
                settle(c, ack, "not saved: %s", *why ? why : "the agent has gone");
        else
                c->ack = ack;
}

static void turn_command(struct afz_checkpoint *c)
{
        struct afz_checkpoint_word word;
        int r;
        do {
                r = afz_checkpoint_helper_read(c->helper_fd, &word);
        } while (r == 0 && word.number != c->number); /* the end of one that was given up */
        if (r == -EAGAIN)
                return;
        if (r < 0) {
                forget_helper(c);
                settle(c, AFZ_ACK_CANNOT, "the checkpoint command could not be run");
        } else if (word.value == 0) {
                settle(c, AFZ_ACK_SAVED, "the checkpoint command has saved");
        } else if (word.value > 0) {
                settle(c, AFZ_ACK_CANNOT, "the checkpoint command failed (status %d)", word.value);
        } else {
                settle(c, AFZ_ACK_CANNOT, "the checkpoint command died of signal %d", -word.value);
        }
}

static void time_out(struct afz_checkpoint *c)
{
        char wait[AFZ_DURATION_TEXT_CAP];
        (void)afz_format_duration(wait, sizeof wait, c->setup.wait_ns);
        if (c->commanded) {
                if (c->helper_fd >= 0)
                        send_helper(c, -1);
                settle(c, AFZ_ACK_CANNOT, "the checkpoint command took longer than %s", wait);
        } else if (c->means == AFZ_CHECKPOINT_AGENT) {
                settle(c, AFZ_ACK_CANNOT, "not saved within %s", wait);
        } else {
                settle(c, AFZ_ACK_CANNOT, "signal %d was sent %s before; it has no answer",
                       c->setup.signal, wait);
        }
}

enum afz_ack afz_checkpoint_turn(struct afz_checkpoint *c, uint64_t now_ns)
{
        if (is_over(c->ack))
                return c->ack;
        if (c->means == AFZ_CHECKPOINT_AGENT)
                turn_agents(c);
        else if (c->commanded)
                turn_command(c);
        if (!is_over(c->ack) && now_ns - c->asked_ns >= c->setup.wait_ns)
                time_out(c);
        return c->ack;
}

void afz_checkpoint_reaped(struct afz_checkpoint *c, pid_t pid)
{
        if (pid > 0 && pid == c->helper)
                c->helper = 0; /* its socket tells the rest, at the next turn */
}

const char *afz_checkpoint_words(const struct afz_checkpoint *c)
{
        return c->words;
}
