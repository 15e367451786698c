#include "native_stack.h"

#include <errno.h>

#if AFZ_HAVE_LIBDW

#include <dlfcn.h>
#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proc_memory.h"
#include "span.h"

/* What we call of it. Only its header was there when we were built: the program links libc alone.
 */
#define CALLS_(X)                                                                                  \
        X(dwfl_begin)                                                                              \
        X(dwfl_end)                                                                                \
        X(dwfl_report_begin)                                                                       \
        X(dwfl_report_end)                                                                         \
        X(dwfl_linux_proc_report)                                                                  \
        X(dwfl_linux_proc_find_elf)                                                                \
        X(dwfl_attach_state)                                                                       \
        X(dwfl_getthread_frames)                                                                   \
        X(dwfl_thread_state_registers)                                                             \
        X(dwfl_thread_state_register_pc)                                                           \
        X(dwfl_frame_pc)                                                                           \
        X(dwfl_addrmodule)                                                                         \
        X(dwfl_module_addrinfo)                                                                    \
        X(dwfl_module_info)

struct calls {
#define MEMBER_(name) __typeof__(name) *name;
        CALLS_(MEMBER_)
};

/* Registers as DWARF counts them. The stack pointer is all that the kernel tells beside the program
 * counter; the frame pointer is guessed where it is needed. */
#if defined(__x86_64__)
enum { STACK_REGISTER = 7, FRAME_REGISTER = 6 };
#elif defined(__aarch64__)
enum { STACK_REGISTER = 31, FRAME_REGISTER = 29 };
#else
#error "which register is the stack pointer here?"
#endif

enum {
        STACK_BYTES = 64 << 10, /* copied at once: one system call instead of one a word */
        GUESS_BYTES = 4 << 10,  /* of these: where the first frame pointer may point */
        GUESSES = 16,           /* that are tried: each costs some 10 us a frame */
};

struct afz_native {
        void *library;
        struct calls dw;
        Dwfl *dwfl;
        Dwfl_Callbacks files;
        pid_t pid;

        /* The thread that is being unwound. */
        uint64_t sp, pc, fp; /* fp 0: not known */
        size_t stack_bytes;
        _Alignas(8) unsigned char stack[STACK_BYTES];
        struct afz_native_frame *frame;
        size_t frames, cap;
};

static int load(struct afz_native *n)
{
        n->library = dlopen("libdw.so.1", RTLD_NOW | RTLD_LOCAL);
        if (!n->library)
                return -ENOTSUP;
        void *symbol;
        /* POSIX promises that a function fits in dlsym's pointer; C does not know. */
#define FIND_(name)                                                                                \
        if (!(symbol = dlsym(n->library, #name)))                                                  \
                return -ENOTSUP;                                                                   \
        memcpy(&n->dw.name, &symbol, sizeof symbol);
        CALLS_(FIND_)
        return 0;
}

/* ---- what libdw asks for ---- */

/* Files with more symbols lie elsewhere, and perhaps on a server: we go without. */
static int no_debuginfo(Dwfl_Module *module, void **userdata, const char *name, Dwarf_Addr base,
                        const char *file, const char *link, GElf_Word crc, char **ret)
{
        (void)module, (void)userdata, (void)name, (void)base, (void)file, (void)link, (void)crc;
        (void)ret;
        return -1;
}

static pid_t next_thread(Dwfl *dwfl, void *arg, void **ret_arg)
{
        (void)dwfl, (void)arg, (void)ret_arg;
        return 0;
}

static bool get_thread(Dwfl *dwfl, pid_t tid, void *arg, void **ret_arg)
{
        (void)dwfl, (void)tid;
        *ret_arg = arg;
        return true;
}

static bool read_memory(Dwfl *dwfl, Dwarf_Addr at, Dwarf_Word *ret, void *arg)
{
        const struct afz_native *n = arg;
        (void)dwfl;
        if (at < n->sp || at - n->sp >= n->stack_bytes ||
            n->stack_bytes - (at - n->sp) < sizeof *ret)
                return afz_proc_memory_read(n->pid, at, ret, sizeof *ret) == 0;
        memcpy(ret, n->stack + (at - n->sp), sizeof *ret);
        return true;
}

static bool set_registers(Dwfl_Thread *thread, void *arg)
{
        struct afz_native *n = arg;
        Dwarf_Word sp = n->sp, fp = n->fp;
        n->dw.dwfl_thread_state_register_pc(thread, n->pc);
        return n->dw.dwfl_thread_state_registers(thread, STACK_REGISTER, 1, &sp) &&
               (!fp || n->dw.dwfl_thread_state_registers(thread, FRAME_REGISTER, 1, &fp));
}

static const Dwfl_Thread_Callbacks threads = {
        .next_thread = next_thread,
        .get_thread = get_thread,
        .memory_read = read_memory,
        .set_initial_registers = set_registers,
};

/* ---- one process ---- */

static int open_process(struct afz_native *n)
{
        n->files = (Dwfl_Callbacks){.find_elf = n->dw.dwfl_linux_proc_find_elf,
                                    .find_debuginfo = no_debuginfo};
        n->dwfl = n->dw.dwfl_begin(&n->files);
        if (!n->dwfl)
                return -ENOMEM;
        n->dw.dwfl_report_begin(n->dwfl);
        int r = n->dw.dwfl_linux_proc_report(n->dwfl, n->pid);
        if (r != 0)
                return r > 0 ? -r : -EIO;
        if (n->dw.dwfl_report_end(n->dwfl, NULL, NULL) != 0)
                return -EIO;
        return n->dw.dwfl_attach_state(n->dwfl, NULL, n->pid, &threads, n) ? 0 : -EIO;
}

int afz_native_open(pid_t pid, struct afz_native **ret)
{
        struct afz_native *n = calloc(1, sizeof *n);
        if (!n)
                return -ENOMEM;
        n->pid = pid;
        int r = load(n);
        if (r >= 0)
                r = open_process(n);
        if (r < 0) {
                afz_native_close(n);
                return r;
        }
        *ret = n;
        return 0;
}

void afz_native_close(struct afz_native *n)
{
        if (!n)
                return;
        if (n->dwfl)
                n->dw.dwfl_end(n->dwfl);
        if (n->library)
                dlclose(n->library);
        free(n);
}

/* ---- one thread ---- */

/* The stack's end is not known: pages are taken until one is not there. */
static void copy_stack(struct afz_native *n)
{
        enum { PIECE = 4096 };
        n->stack_bytes = 0;
        if (afz_proc_memory_read(n->pid, n->sp, n->stack, STACK_BYTES) == 0) {
                n->stack_bytes = STACK_BYTES;
                return;
        }
        size_t bytes = PIECE - (size_t)(n->sp % PIECE);
        while (n->stack_bytes + bytes <= STACK_BYTES &&
               afz_proc_memory_read(n->pid, n->sp + n->stack_bytes, n->stack + n->stack_bytes,
                                    bytes) == 0) {
                n->stack_bytes += bytes;
                bytes = PIECE;
        }
}

static void name_frame(const struct afz_native *n, uint64_t pc, struct afz_native_frame *ret)
{
        Dwfl_Module *module = n->dw.dwfl_addrmodule(n->dwfl, pc);
        GElf_Off offset;
        GElf_Sym symbol;
        *ret = (struct afz_native_frame){{0}, {0}};
        if (!module)
                return;
        const char *function =
                n->dw.dwfl_module_addrinfo(module, pc, &offset, &symbol, NULL, NULL, NULL);
        const char *file = n->dw.dwfl_module_info(module, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
        if (function)
                afz_span_copy(afz_span_str(function), ret->function, sizeof ret->function);
        if (file)
                afz_span_copy(afz_span_base_name(afz_span_str(file)), ret->module,
                              sizeof ret->module);
}

static int take_frame(Dwfl_Frame *state, void *arg)
{
        struct afz_native *n = arg;
        Dwarf_Addr pc;
        bool here;
        if (n->frames >= n->cap || !n->dw.dwfl_frame_pc(state, &pc, &here))
                return DWARF_CB_ABORT;
        /* A return address may be that of the next function: who called stands before it. */
        name_frame(n, here || pc == 0 ? pc : pc - 1, &n->frame[n->frames++]);
        return DWARF_CB_OK;
}

static bool is_libc(const struct afz_native_frame *frame)
{
        return strncmp(frame->module, "libc.", 5) == 0 || strncmp(frame->module, "libc-", 5) == 0 ||
               strncmp(frame->module, "libpthread", 10) == 0;
}

/* Where a program and where its threads begin: libdw does not say when it is lost. */
static bool is_whole(const struct afz_native_frame *frame, size_t n, bool is_main)
{
        bool program = false;
        for (size_t i = 0; i < n; i++)
                program |= !is_libc(&frame[i]);
        return program &&
               (is_main ? strcmp(frame[n - 1].function, "_start") == 0 : is_libc(&frame[n - 1]));
}

/* Whether it came to where the thread began, or to the end of what is wanted. */
static bool unwind(struct afz_native *n, pid_t tid, uint64_t fp, struct afz_native_frame *ret,
                   size_t cap)
{
        n->fp = fp;
        n->frame = ret;
        n->frames = 0;
        n->cap = cap;
        (void)n->dw.dwfl_getthread_frames(n->dwfl, tid, take_frame, n);
        return n->frames == cap || is_whole(ret, n->frames, tid == n->pid);
}

/* Code that was not optimised finds its frames by a register that nobody has told us, and that what
 * it called may not have saved. It points to a saved one with a return address above: of the places
 * that look so, the first with which all adds up to the thread's beginning. */
static void guess_frame_pointer(struct afz_native *n, pid_t tid, struct afz_native_frame *ret,
                                size_t cap)
{
        struct afz_native_frame frame[AFZ_NATIVE_FRAMES];
        size_t most = n->stack_bytes < GUESS_BYTES ? n->stack_bytes : GUESS_BYTES, had = n->frames;
        size_t room = cap < AFZ_NATIVE_FRAMES ? cap : AFZ_NATIVE_FRAMES;
        unsigned tried = 0;
        for (size_t at = 0; at + 16 <= most && tried < GUESSES; at += 8) {
                uint64_t above;
                memcpy(&above, n->stack + at + 8, sizeof above);
                if (!n->dw.dwfl_addrmodule(n->dwfl, above))
                        continue;
                tried++;
                if (!unwind(n, tid, n->sp + at, frame, room) || n->frames <= had)
                        continue;
                memcpy(ret, frame, n->frames * sizeof *frame);
                return;
        }
        n->frames = had;
}

int afz_native_thread(struct afz_native *n, pid_t tid, uint64_t sp, uint64_t pc,
                      struct afz_native_frame *ret, size_t cap)
{
        n->sp = sp;
        n->pc = pc;
        copy_stack(n);
        if (!unwind(n, tid, 0, ret, cap))
                guess_frame_pointer(n, tid, ret, cap);
        return (int)n->frames;
}

#else

int afz_native_open(pid_t pid, struct afz_native **ret)
{
        (void)pid, (void)ret;
        return -ENOTSUP;
}

int afz_native_thread(struct afz_native *native, pid_t tid, uint64_t sp, uint64_t pc,
                      struct afz_native_frame *ret, size_t cap)
{
        (void)native, (void)tid, (void)sp, (void)pc, (void)ret, (void)cap;
        return -ENOTSUP;
}

void afz_native_close(struct afz_native *native)
{
        (void)native;
}

#endif
