#include "wait_kind.h"

#include <stddef.h>
#include <string.h>

#include "count_of.h"

/* The first that fits counts. Names differ from kernel to kernel: only their lasting part is here.
 */
static const struct {
        const char *has;
        enum afz_wait wait;
        const char *words;
} waits[] = {
        {"nanosleep", AFZ_WAIT_OUT, "a clock"},
        {"sigsuspend", AFZ_WAIT_OUT, "a signal"},
        {"sigtimedwait", AFZ_WAIT_OUT, "a signal"},
        {"sys_pause", AFZ_WAIT_OUT, "a signal"},
        {"tty_read", AFZ_WAIT_OUT, "the terminal"},
        {"wait_woken", AFZ_WAIT_OUT, "the terminal or the network"},
        {"inet_csk_accept", AFZ_WAIT_OUT, "a connection"},
        {"sk_wait_data", AFZ_WAIT_OUT, "the network"},
        {"tcp_", AFZ_WAIT_OUT, "the network"},
        {"skb_wait_for_more", AFZ_WAIT_OUT, "a socket"},
        {"skb_recv_datagram", AFZ_WAIT_OUT, "a socket"},
        {"inotify", AFZ_WAIT_OUT, "a file to change"},
        {"ptrace", AFZ_WAIT_OUT, "a debugger"},
        {"nvidia", AFZ_WAIT_OUT, "the GPU's driver"},
        {"futex", AFZ_WAIT_LOCK, "a lock"},
        {"semtimedop", AFZ_WAIT_LOCK, "a semaphore"},
        {"do_semop", AFZ_WAIT_LOCK, "a semaphore"},
        {"do_msg", AFZ_WAIT_PIPE, "a message queue"},
        {"wq_sleep", AFZ_WAIT_PIPE, "a message queue"},
        {"locks_lock", AFZ_WAIT_PIPE, "a file lock"},
        {"flock_lock", AFZ_WAIT_PIPE, "a file lock"},
        {"fcntl_setlk", AFZ_WAIT_PIPE, "a file lock"},
        {"pipe_read", AFZ_WAIT_PIPE, "something to come out of a pipe"},
        {"pipe_write", AFZ_WAIT_PIPE, "room in a pipe"},
        {"pipe_wait", AFZ_WAIT_PIPE, "the other end of a pipe"},
        {"unix_stream", AFZ_WAIT_PIPE, "the other end of a local socket"},
        {"sock_alloc_send", AFZ_WAIT_PIPE, "room in a local socket"},
        {"wait4", AFZ_WAIT_CHILD, "one of its children to end"},
        {"waitid", AFZ_WAIT_CHILD, "one of its children to end"},
        {"accept", AFZ_WAIT_OUT, "a connection"},
        {"do_wait", AFZ_WAIT_CHILD, "one of its children to end"},
        {"poll", AFZ_WAIT_ANY, "one of several things"},
        {"select", AFZ_WAIT_ANY, "one of several things"},
};

/* Where who looked has seen what it is that is polled or read (sense/thread_wait.h). A local socket
 * that is read is told by its function above; one that is polled may lead anywhere. */
static const struct {
        const char *of;
        bool polled; /* only of what is polled */
        enum afz_wait wait;
        const char *words;
} things[] = {
        {" of a socket", true, AFZ_WAIT_OUT, "the network or another program"},
        {" of a terminal", false, AFZ_WAIT_OUT, "the terminal"},
        {" of a pipe from outside", false, AFZ_WAIT_OUT, "somebody outside the job"},
        {" of a device", true, AFZ_WAIT_OUT, "a device or a file"},
        {" of a child", true, AFZ_WAIT_CHILD, "one of its children to end"},
        {" of its own pipes", true, AFZ_WAIT_PIPE, "something to come out of its own pipes"},
};

static enum afz_wait kind_of(const char *text, const char **ret_words)
{
        /* "futex_do_wait" is no "do_wait", so the order of the rows matters. */
        for (size_t i = 0; i < AFZ_COUNT_OF(waits); i++)
                if (strstr(text, waits[i].has)) {
                        *ret_words = waits[i].words;
                        return waits[i].wait;
                }
        *ret_words = "something";
        return AFZ_WAIT_UNKNOWN;
}

enum afz_wait afz_wait_of(const char *text, const char **ret_words)
{
        enum afz_wait wait = kind_of(text, ret_words);
        for (size_t i = 0; i < AFZ_COUNT_OF(things); i++)
                if (strstr(text, things[i].of) && (!things[i].polled || wait == AFZ_WAIT_ANY)) {
                        *ret_words = things[i].words;
                        return things[i].wait;
                }
        return wait;
}

bool afz_wait_is_timed(const char *text)
{
        return (strstr(text, " with a deadline") && !afz_wait_is_unclear(text)) ||
               strstr(text, "nanosleep");
}

bool afz_wait_is_unclear(const char *text)
{
        return strstr(text, " perhaps with a deadline");
}
