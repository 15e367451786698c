#include "job_proc.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "clock.h"
#include "count_of.h"
#include "dir.h"

static const struct {
        uint64_t slow_ns;     /* pace of status, open files, wait channel */
        uint64_t slow_many;   /* so many processes are read in that time, at 40 us each */
        uint64_t slowest_ns;  /* pace for the largest job */
        uint64_t threads_ns;  /* pace of the threads' states: a file a thread */
        uint64_t command_ns;  /* slowest pace of the command line, which doubles from slow_ns on */
        uint64_t max_threads; /* more than this are not looked at one by one */
        uint64_t max_fds;     /* entries counted by hand where the kernel does not say how many */
} pace = {
        .slow_ns = 1000000000,     /* 1 s: these are for people and trends, not for the guard */
        .slow_many = 16,           /* 0.06 % of a core: a fifth of what a watch may cost */
        .slowest_ns = 5000000000,  /* 5 s: a leak or a hang takes longer to tell */
        .threads_ns = 5000000000,  /* 5 s: at 8 us a thread, 256 threads cost 0.04 % of a core */
        .command_ns = 32000000000, /* 32 s: it is for people, and touches the job's own memory */
        .max_threads = 512,        /* 4 ms in one tick */
        .max_fds = 4096,           /* 1 ms in one tick */
};

static const char *const file_name[AFZ_PROC_FILES] = {"stat", "statm", "io"};

static int proc_path(char *buf, size_t cap, uint64_t pid, const char *file)
{
        return afz_path(buf, cap, "%llu/%s", (unsigned long long)pid, file);
}

/* The start of a file that may be cut; empty when it cannot be read. */
static struct afz_span read_head(const struct afz_env *env, uint64_t pid, const char *file,
                                 char *buf, size_t cap)
{
        char path[64];
        struct afz_span text = {buf, 0};
        proc_path(path, sizeof path, pid, file);
        (void)afz_env_read_head(env, AFZ_ROOT_PROC, path, buf, cap, &text);
        return text;
}

void afz_proc_enter(struct afz_proc *proc, const struct afz_env *env,
                    const struct afz_member *member, bool keep_open, uint64_t now_ns)
{
        memset(proc, 0, sizeof *proc);
        proc->pid = member->pid;
        proc->slow_next_ns = proc->threads_next_ns = now_ns;
        proc->slow.subject.kind = AFZ_KIND_PROC;
        for (int i = 0; i < AFZ_PROC_FILES; i++) {
                char path[64];
                proc->fd[i] = -1;
                if (!keep_open || proc_path(path, sizeof path, member->pid, file_name[i]) < 0)
                        continue;
                int fd = afz_env_open(env, AFZ_ROOT_PROC, path, 0);
                proc->fd[i] = fd >= 0 ? fd : -1;
        }
}

void afz_proc_leave(struct afz_proc *proc)
{
        for (int i = 0; proc->pid != 0 && i < AFZ_PROC_FILES; i++)
                if (proc->fd[i] >= 0)
                        close(proc->fd[i]);
        proc->pid = 0;
}

static int read_file(struct afz_proc *proc, const struct afz_env *env, enum afz_proc_file file,
                     char *buf, size_t cap, struct afz_span *ret)
{
        if (proc->fd[file] >= 0) {
                ssize_t n = afz_fd_read_record(proc->fd[file], buf, cap);
                if (n < 0)
                        return (int)n;
                *ret = (struct afz_span){buf, (size_t)n};
                return 0;
        }
        char path[64];
        proc_path(path, sizeof path, proc->pid, file_name[file]);
        int r = afz_env_read(env, AFZ_ROOT_PROC, path, buf, cap, ret);
        return r == -ENOENT ? -ESRCH : r;
}

static void set_stat(struct afz_sample *s, const struct afz_env *env,
                     const struct afz_proc_stat *st)
{
        uint64_t tick_ns = 1000000000U / (uint64_t)env->clock_ticks;
        afz_sample_set_u64(s, AFZ_PROC_PPID, st->ppid);
        afz_sample_set(s, AFZ_PROC_STATE, st->state);
        afz_sample_set_u64(s, AFZ_PROC_THREADS, st->threads);
        afz_sample_set_scaled(s, AFZ_PROC_USER, st->user_ticks, tick_ns);
        afz_sample_set_scaled(s, AFZ_PROC_SYSTEM, st->system_ticks, tick_ns);
        afz_sample_set_u64(s, AFZ_PROC_MINOR_FAULTS, st->minor_faults);
        afz_sample_set_u64(s, AFZ_PROC_MAJOR_FAULTS, st->major_faults);
        /* Since 5.14 it is not accounted unless one asks for it, and is printed as 0 then. */
        if (st->io_wait_ticks > 0)
                afz_sample_set_scaled(s, AFZ_PROC_IO_WAIT, st->io_wait_ticks, tick_ns);
        afz_sample_set(s, AFZ_PROC_NICE, st->nice);
}

static void set_statm(struct afz_sample *s, const struct afz_env *env,
                      const struct afz_proc_statm *m)
{
        uint64_t page = (uint64_t)env->page_bytes;
        if (m->size_pages == 0)
                return; /* no address space: it became a zombie since its stat was read */
        afz_sample_set_scaled(s, AFZ_PROC_VSIZE, m->size_pages, page);
        afz_sample_set_scaled(s, AFZ_PROC_RSS, m->resident_pages, page);
        afz_sample_set_scaled(s, AFZ_PROC_RSS_SHARED, m->shared_pages, page);
        /* The kernel reads its counters one after the other: where shared has overtaken, there is
         * next to nothing anonymous. */
        uint64_t anon =
                m->resident_pages > m->shared_pages ? m->resident_pages - m->shared_pages : 0;
        afz_sample_set_scaled(s, AFZ_PROC_RSS_ANON, anon, page);
}

static void set_io(struct afz_sample *s, const struct afz_proc_io *io)
{
        afz_sample_set_u64(s, AFZ_PROC_READ, io->read_bytes);
        afz_sample_set_u64(s, AFZ_PROC_WRITTEN, io->written_bytes);
        afz_sample_set_u64(s, AFZ_PROC_CANCELLED, io->cancelled_bytes);
        afz_sample_set_u64(s, AFZ_PROC_READ_CALLS, io->read_calls_bytes);
        afz_sample_set_u64(s, AFZ_PROC_WRITE_CALLS, io->write_calls_bytes);
}

static const struct afz_key pss_keys[] = {
        {"Pss", AFZ_PROC_PSS, 0},
        {"Pss_Anon", AFZ_PROC_PSS_ANON, 0},
        {"Pss_File", AFZ_PROC_PSS_FILE, 0},
        {"Pss_Shmem", AFZ_PROC_PSS_SHMEM, 0},
        {"Private_Dirty", AFZ_PROC_PRIVATE_DIRTY, 0},
        {"SwapPss", AFZ_PROC_SWAP_PSS, 0},
};

static void forget(struct afz_sample *s, const struct afz_key *keys, size_t n)
{
        for (size_t i = 0; i < n; i++)
                afz_sample_forget(s, (enum afz_metric)keys[i].id);
}

/* It ran another program, or calls itself something else: look at all of it again. */
static void note_name(struct afz_proc *proc, struct afz_span comm)
{
        char name[sizeof proc->comm];
        afz_span_copy(comm, name, sizeof name);
        if (strcmp(name, proc->comm) == 0)
                return;
        memcpy(proc->comm, name, sizeof name);
        proc->slow_next_ns = proc->command_next_ns = proc->command_step_ns = 0;
        /* They were another program's. */
        forget(&proc->slow, pss_keys, AFZ_COUNT_OF(pss_keys));
        proc->pss = (struct afz_pss_record){0};
}

int afz_proc_read_fast(struct afz_proc *proc, const struct afz_env *env, struct afz_member *member,
                       struct afz_sample *s)
{
        char buf[1024];
        struct afz_span text;
        struct afz_proc_stat st;
        struct afz_proc_statm statm;
        struct afz_proc_io io;

        proc->memory_known = false;
        int r = read_file(proc, env, AFZ_PROC_STAT, buf, sizeof buf, &text);
        if (r < 0)
                return r;
        r = afz_proc_stat_parse(text, &st);
        if (r < 0)
                return r;
        if (st.start_ticks != member->start_ticks)
                return -ESRCH; /* its pid is somebody else's now */
        member->ppid = st.ppid;
        member->pgrp = st.pgrp;
        member->session = st.session;
        set_stat(s, env, &st);
        note_name(proc, st.comm);
        proc->memory_known = true;
        if (st.state == 'Z' || st.state == 'X')
                return 0; /* a zombie has no memory and no files: absent, not zero */

        r = read_file(proc, env, AFZ_PROC_STATM, buf, sizeof buf, &text);
        if (r == -ESRCH)
                return r;
        proc->memory_known = r == 0 && afz_proc_statm_parse(text, &statm) == 0;
        if (proc->memory_known)
                set_statm(s, env, &statm);
        if (read_file(proc, env, AFZ_PROC_IO, buf, sizeof buf, &text) == 0 &&
            afz_proc_io_parse(text, &io) == 0)
                set_io(s, &io);
        return 0;
}

static void read_status(struct afz_proc *proc, const struct afz_env *env)
{
        static const struct afz_key keys[] = {
                {"VmLck", AFZ_PROC_LOCKED, 0},
                {"VmPin", AFZ_PROC_PINNED, 0},
                {"VmHWM", AFZ_PROC_RSS_PEAK, 0},
                {"RssFile", AFZ_PROC_RSS_FILE, 0},
                {"RssShmem", AFZ_PROC_RSS_SHMEM, 0},
                {"VmPTE", AFZ_PROC_PAGE_TABLES, 0},
                {"VmSwap", AFZ_PROC_SWAP, 0},
                {"voluntary_ctxt_switches", AFZ_PROC_SWITCHES, 0},
                {"nonvoluntary_ctxt_switches", AFZ_PROC_PREEMPTIONS, 0},
        };
        char path[64], buf[4096];
        struct afz_span text;
        proc_path(path, sizeof path, proc->pid, "status");
        forget(&proc->slow, keys, AFZ_COUNT_OF(keys));
        if (afz_env_read(env, AFZ_ROOT_PROC, path, buf, sizeof buf, &text) == 0)
                afz_span_each_key(text, keys, AFZ_COUNT_OF(keys), afz_sample_set_key, &proc->slow);
}

/* Since 6.2 the kernel tells the number of open files as the folder's size; before, they are
 * counted, but only so many of them. A folder that is larger stays absent: a wrong number is worse.
 */
static void read_fds(struct afz_proc *proc, const struct afz_env *env)
{
        char path[64];
        struct stat st;
        struct afz_dir dir;
        afz_sample_forget(&proc->slow, AFZ_PROC_FDS);
        proc_path(path, sizeof path, proc->pid, "fd");
        int r = afz_dir_open(&dir, env, AFZ_ROOT_PROC, path);
        if (r >= 0 && env->fixture_fd < 0 && fstat(dir.fd, &st) == 0 && st.st_size > 0) {
                afz_sample_set(&proc->slow, AFZ_PROC_FDS, st.st_size);
        } else {
                uint64_t n = 0;
                while (r >= 0 && (r = afz_dir_next(&dir)) > 0 && ++n <= pace.max_fds)
                        ;
                if (r == 0)
                        afz_sample_set_u64(&proc->slow, AFZ_PROC_FDS, n);
        }
        afz_dir_close(&dir);
}

static void read_fds_limit(struct afz_proc *proc, const struct afz_env *env)
{
        char path[64], buf[4096];
        struct afz_span text, line;
        uint64_t limit;
        proc_path(path, sizeof path, proc->pid, "limits");
        if (afz_env_read(env, AFZ_ROOT_PROC, path, buf, sizeof buf, &text) < 0)
                return;
        while (afz_span_take_line(&text, &line) == 0)
                if (afz_span_take_prefix(&line, "Max open files") == 0 &&
                    afz_span_take_u64(&line, &limit) == 0)
                        afz_sample_set_u64(&proc->slow, AFZ_PROC_FDS_LIMIT, limit);
}

static void read_oom_adj(struct afz_proc *proc, const struct afz_env *env)
{
        char buf[32];
        int64_t adj;
        struct afz_span text = read_head(env, proc->pid, "oom_score_adj", buf, sizeof buf);
        if (afz_span_i64(text, &adj) == 0)
                afz_sample_set(&proc->slow, AFZ_PROC_OOM_ADJ, adj);
}

/* "0" stands for running, or for "you may not know". */
static void read_wait(struct afz_proc *proc, const struct afz_env *env)
{
        char buf[64];
        struct afz_span text = afz_span_trim(read_head(env, proc->pid, "wchan", buf, sizeof buf));
        if (text.n == 0 || afz_span_eq(text, "0"))
                proc->wait[0] = '\0';
        else
                afz_span_copy(text, proc->wait, sizeof proc->wait);
}

void afz_proc_read_threads(struct afz_proc *proc, const struct afz_env *env, uint64_t now_ns)
{
        if (now_ns < proc->threads_next_ns)
                return;
        /* A little apart for each process, so that they do not all come in the same tick. */
        proc->threads_next_ns =
                now_ns + pace.threads_ns + proc->pid * 37 % 10 * (pace.threads_ns / 100);
        char path[64], buf[1024];
        struct afz_dir dir;
        uint64_t tid, seen = 0, running = 0, waiting = 0;
        afz_sample_forget(&proc->slow, AFZ_PROC_THREADS_RUNNING);
        afz_sample_forget(&proc->slow, AFZ_PROC_THREADS_DISK);
        proc_path(path, sizeof path, proc->pid, "task");
        int r = afz_dir_open(&dir, env, AFZ_ROOT_PROC, path);
        while (r >= 0 && seen <= pace.max_threads && (r = afz_dir_next(&dir)) > 0) {
                struct afz_span text;
                struct afz_proc_stat st;
                if (afz_dir_name_u64(&dir, &tid) < 0)
                        continue;
                seen++;
                if (afz_path(path, sizeof path, "%llu/task/%llu/stat",
                             (unsigned long long)proc->pid, (unsigned long long)tid) < 0 ||
                    afz_env_read(env, AFZ_ROOT_PROC, path, buf, sizeof buf, &text) < 0 ||
                    afz_proc_stat_parse(text, &st) < 0)
                        continue;
                running += st.state == 'R';
                waiting += st.state == 'D';
        }
        if (r == 0 && seen > 0) {
                afz_sample_set_u64(&proc->slow, AFZ_PROC_THREADS_RUNNING, running);
                afz_sample_set_u64(&proc->slow, AFZ_PROC_THREADS_DISK, waiting);
        }
        afz_dir_close(&dir);
}

/* The command line for people: blanks between the words. */
static void show_command(struct afz_proc *proc)
{
        size_t n = proc->cmdline_len;
        while (n > 0 && proc->cmdline[n - 1] == '\0')
                n--;
        afz_span_copy((struct afz_span){proc->cmdline, n}, proc->command, sizeof proc->command);
        for (size_t i = 0; i < n && i < sizeof proc->command - 1; i++)
                if (proc->cmdline[i] == '\0')
                        proc->command[i] = ' ';
}

static void read_command(struct afz_proc *proc, const struct afz_env *env,
                         const struct afz_proc *parent, bool is_root)
{
        char variables[8192];
        struct afz_span cmdline =
                read_head(env, proc->pid, "cmdline", proc->cmdline, sizeof proc->cmdline);
        proc->cmdline_len = (uint16_t)cmdline.n;
        show_command(proc);
        proc->role = afz_role_guess(&(struct afz_role_clues){
                .comm = afz_span_str(proc->comm),
                .cmdline = cmdline,
                .environ = read_head(env, proc->pid, "environ", variables, sizeof variables),
                .parent_cmdline = {parent ? parent->cmdline : "", parent ? parent->cmdline_len : 0},
                .parent_role = parent ? parent->role.role : AFZ_ROLE_OTHER,
                .is_root = is_root,
        });
}

uint64_t afz_proc_slow_ns(size_t processes)
{
        uint64_t ns = processes * pace.slow_ns / pace.slow_many;
        return ns < pace.slow_ns ? pace.slow_ns : ns > pace.slowest_ns ? pace.slowest_ns : ns;
}

void afz_proc_read_slow(struct afz_proc *proc, const struct afz_env *env,
                        const struct afz_proc *parent, bool is_root, uint64_t now_ns,
                        uint64_t every_ns)
{
        if (now_ns < proc->slow_next_ns)
                return;
        proc->slow_next_ns = now_ns + every_ns;
        bool first = proc->slow.t_ns == 0;
        proc->slow.t_ns = now_ns;

        read_status(proc, env);
        read_fds(proc, env);
        read_wait(proc, env);
        if (now_ns >= proc->command_next_ns) {
                uint64_t step = proc->command_step_ns ? proc->command_step_ns * 2 : pace.slow_ns;
                proc->command_step_ns = step < pace.command_ns ? step : pace.command_ns;
                proc->command_next_ns = now_ns + proc->command_step_ns;
                read_command(proc, env, parent, is_root);
                read_oom_adj(proc, env);
        }
        if (first)
                read_fds_limit(proc, env);
        /* Do not let processes that were born together be read together for ever. */
        if (first)
                proc->slow_next_ns += proc->pid * 37 % 10 * (every_ns / 10);
}

static int64_t held_bytes(const struct afz_proc *proc, const struct afz_sample *s)
{
        return afz_sample_or(s, AFZ_PROC_RSS_ANON, 0) +
               afz_sample_or(&proc->slow, AFZ_PROC_SWAP, 0);
}

void afz_proc_read_pss(struct afz_proc *proc, const struct afz_env *env, struct afz_pss_gate *gate,
                       const struct afz_sample *fast)
{
        char path[64], buf[2048];
        struct afz_span text;
        int64_t rss = 0;
        uint64_t start_ns = afz_clock_ns(CLOCK_THREAD_CPUTIME_ID);
        (void)afz_sample_get(fast, AFZ_PROC_RSS, &rss);
        proc_path(path, sizeof path, proc->pid, "smaps_rollup");
        int r = afz_env_read(env, AFZ_ROOT_PROC, path, buf, sizeof buf, &text);
        /* Counted from the tick's own time: by it the age of the figures is reckoned. */
        afz_pss_gate_took(gate, &proc->pss, fast->t_ns,
                          afz_clock_ns(CLOCK_THREAD_CPUTIME_ID) - start_ns, (uint64_t)rss);
        if (r < 0)
                return;
        forget(&proc->slow, pss_keys, AFZ_COUNT_OF(pss_keys));
        afz_span_each_key(text, pss_keys, AFZ_COUNT_OF(pss_keys), afz_sample_set_key, &proc->slow);
        proc->held_at_pss_bytes = held_bytes(proc, fast);
        proc->shared_at_pss_bytes = (uint64_t)afz_sample_or(fast, AFZ_PROC_RSS_SHARED, 0);
}

/* Shared pages counted once where PSS is known; else an upper bound. What it has got since is its
 * own; what it has given back was shared to the same degree as the rest. Pages that only moved to
 * swap are neither. */
static bool need_of(const struct afz_proc *proc, const struct afz_sample *s, int64_t *ret)
{
        int64_t anon, pss_anon, pss_shmem;
        if (!afz_sample_get(s, AFZ_PROC_RSS_ANON, &anon))
                return false;
        if (afz_sample_get(s, AFZ_PROC_PSS_ANON, &pss_anon) &&
            afz_sample_get(s, AFZ_PROC_PSS_SHMEM, &pss_shmem)) {
                int64_t held = held_bytes(proc, s), then = proc->held_at_pss_bytes;
                int64_t share = pss_anon + afz_sample_or(s, AFZ_PROC_SWAP_PSS, 0);
                if (held >= then)
                        share += held - then;
                else
                        share = (int64_t)((double)share * (double)held / (double)then);
                *ret = share + pss_shmem;
                return true;
        }
        *ret = anon + afz_sample_or(s, AFZ_PROC_RSS_SHMEM, 0) + afz_sample_or(s, AFZ_PROC_SWAP, 0);
        return true;
}

void afz_proc_finish(struct afz_proc *proc, struct afz_sample *s, uint64_t now_ns)
{
        int64_t need;
        int64_t state = afz_sample_or(s, AFZ_PROC_STATE, 'Z');
        if (state != 'Z' && state != 'X') {
                afz_sample_merge(s, &proc->slow);
                if (proc->pss.taken_ns != 0 && afz_sample_has(s, AFZ_PROC_PSS))
                        afz_sample_set_u64(s, AFZ_PROC_PSS_AGE, now_ns - proc->pss.taken_ns);
                if (need_of(proc, s, &need))
                        afz_sample_set(s, AFZ_PROC_NEED, need);
        }
        if (proc->slow.t_ns != 0)
                afz_sample_set(s, AFZ_PROC_ROLE, proc->role.role);
        if (proc->slow.t_ns != 0 && proc->role.rank >= 0)
                afz_sample_set(s, AFZ_PROC_RANK, proc->role.rank);
        s->name = proc->comm;
        s->detail = proc->command[0] ? proc->command : NULL;
        s->note = proc->wait[0] && state != 'Z' && state != 'X' ? proc->wait : NULL;
}
