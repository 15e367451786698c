#include "unwind.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/uio.h>
#include <unistd.h>

#include "probe.h"

#if defined(__x86_64__)
#define HERE(u)                                                                                    \
        __asm__ volatile("leaq 0(%%rip), %0\n\tmovq %%rsp, %1\n\tmovq %%rbp, %2"                   \
                         : "=r"((u)->pc), "=r"((u)->sp), "=r"((u)->fp))
#define BARE(pc) (pc)
#elif defined(__aarch64__)
#define HERE(u)                                                                                    \
        __asm__ volatile("adr %0, .\n\tmov %1, sp\n\tmov %2, x29"                                  \
                         : "=r"((u)->pc), "=r"((u)->sp), "=r"((u)->fp))
#define BARE(pc) ((pc) & ((UINT64_C(1) << 48) - 1)) /* without its signature */
#else
#define HERE(u)  ((u)->pc = (u)->sp = (u)->fp = 0)
#define BARE(pc) (pc)
#endif

/* ---- the thread's own stack ---- */

enum {
        MAIN_BYTES = 8 << 20,     /* below the top, where the kernel maps nothing but this stack (it
                                     keeps 128 MiB free) */
        THREAD_BYTES = 256 << 10, /* of a thread's stack, that is asked for page by page */
        PAGE = 4096,
        PAGES_AT_ONCE = 64,
        FAILURES = 4, /* then this thread runs on stacks of its own making */
};

static uint64_t main_top; /* the program's name lies above all frames of the main stack */

static AFZ_TLS struct {
        int is_main, failures;
        uint64_t checked; /* from here to the thread's own block all is there */
} own_stack;

void afz_unwind_start(void)
{
        main_top = getauxval(AT_EXECFN);
        own_stack.is_main = main_top != 0;
}

/* Asks the kernel to read a byte of each page in [from, to). The window serves as room. */
static bool is_there(struct afz_unwind *u, uint64_t from, uint64_t to)
{
        char bytes[PAGES_AT_ONCE];
        for (from &= ~(uint64_t)(PAGE - 1); from < to;) {
                unsigned n = 0;
                for (; n < PAGES_AT_ONCE && from < to; from += PAGE)
                        u->page[n++] = (struct iovec){(void *)(uintptr_t)from, 1}; /* NOLINT */
                struct iovec ret = {bytes, n};
                if (process_vm_readv(afz_pid(), &ret, 1, u->page, n, 0) != (ssize_t)n)
                        return false;
        }
        return true;
}

static void find_bounds(struct afz_unwind *u)
{
        uint64_t top = own_stack.is_main ? main_top : (uint64_t)(uintptr_t)pthread_self();
        uint64_t most = own_stack.is_main ? MAIN_BYTES : THREAD_BYTES;
        u->low = u->high = 0;
        if (u->sp >= top || top - u->sp > most)
                return;
        if (!own_stack.is_main && (own_stack.checked == 0 || u->sp < own_stack.checked)) {
                uint64_t to = own_stack.checked ? own_stack.checked : top;
                if (own_stack.failures >= FAILURES || !is_there(u, u->sp, to)) {
                        own_stack.failures++;
                        return;
                }
                own_stack.checked = u->sp & ~(uint64_t)(PAGE - 1);
        }
        u->low = u->sp;
        u->high = top;
}

/* No sanitizer: all of the stack is looked at, whoever's variables are there. */
__attribute__((no_sanitize("address", "thread"), noinline)) static uint64_t load(uint64_t at)
{
        return *(const volatile uint64_t *)(uintptr_t)at; /* NOLINT */
}

static bool peek(struct afz_unwind *u, uint64_t at, uint64_t *ret)
{
        if (at % 8 != 0)
                return false;
        if (at >= u->low && at < u->high && u->high - at >= 8) {
                *ret = load(at);
                return true;
        }
        if (at < u->window_at || at - u->window_at + 8 > u->window_size) {
                u->window_at = at;
                u->window_size = afz_read_self(at, u->window, sizeof u->window);
        }
        if (u->window_size < 8 || at - u->window_at > u->window_size - 8)
                return false;
        memcpy(ret, u->window + (at - u->window_at), 8);
        return true;
}

/* ---- the rules of return addresses ---- */

enum { RULES = 8192, RULE_WINDOW = 4 };

/* Two words: the address, and the rule packed with a part of the address, so that a reader who
 * meets a writer in between sees that they do not belong together. */
static struct {
        _Atomic uint64_t pc, packed;
} rules[RULES];

static uint64_t hash_of(uint64_t pc)
{
        return (pc * UINT64_C(0x9e3779b97f4a7c15)) >> 40;
}

static bool recall(uint64_t pc, struct afz_cfi_rule *ret)
{
        for (unsigned i = 0; i < RULE_WINDOW; i++) {
                unsigned at = (unsigned)(hash_of(pc) + i) % RULES;
                if (atomic_load_explicit(&rules[at].pc, memory_order_acquire) == pc)
                        return afz_cfi_unpack(
                                atomic_load_explicit(&rules[at].packed, memory_order_acquire),
                                (uint16_t)hash_of(pc), ret);
        }
        return false;
}

static void remember(uint64_t pc, const struct afz_cfi_rule *rule)
{
        uint64_t packed = afz_cfi_pack(rule, (uint16_t)hash_of(pc));
        unsigned at = (unsigned)hash_of(pc) % RULES;
        for (unsigned i = 0; i < RULE_WINDOW; i++) {
                unsigned other = (unsigned)(hash_of(pc) + i) % RULES;
                if (atomic_load(&rules[other].pc) == 0) {
                        at = other;
                        break;
                }
        }
        atomic_store(&rules[at].pc, 0);
        atomic_store(&rules[at].packed, packed);
        atomic_store_explicit(&rules[at].pc, pc, memory_order_release);
}

void afz_unwind_forget(void)
{
        for (unsigned i = 0; i < RULES; i++)
                atomic_store_explicit(&rules[i].pc, 0, memory_order_relaxed);
}

static uint64_t read_module(void *context, uint64_t at, void *buf, uint64_t size)
{
        (void)context;
        return afz_read_self(at, buf, size);
}

static AFZ_COLD struct afz_cfi_rule work_out(struct afz_unwind *u, uint64_t pc)
{
        struct afz_cfi_rule rule = {.kind = AFZ_CFI_GUESS, .cfa = 16, .ra = -8, .fp = -16};
        struct afz_module module;
        u->source.read = read_module;
        if (afz_module_find(u->book, pc, &module) == 0 && module.unwind != 0 &&
            afz_cfi_find(&u->source, module.unwind, module.base, module.end, pc, &rule) < 0)
                rule.kind = AFZ_CFI_GUESS;
        remember(pc, &rule);
        return rule;
}

static bool is_known_code(struct afz_unwind *u, uint64_t pc)
{
        struct afz_cfi_rule rule;
        struct afz_module module;
        return recall(pc - 1, &rule) || afz_module_find(u->book, pc, &module) == 0;
}

/* ---- the walk ---- */

enum { FURTHEST_BYTES = 1 << 21, LOWEST_CODE = 4096 }; /* a frame's size, as cfi.h has it */

/* Where the kernel keeps the registers of what a signal interrupted, from the stack pointer that
 * its handler returned with (rt_sigframe). */
#if defined(__aarch64__)
enum { KEPT_FP = 128 + 184 + 29 * 8, KEPT_SP = 128 + 184 + 31 * 8, KEPT_PC = 128 + 184 + 32 * 8 };
#else
enum { KEPT_FP = 40 + 10 * 8, KEPT_SP = 40 + 15 * 8, KEPT_PC = 40 + 16 * 8 };
#endif

/* Once a walk: the stack that it leads to may lie anywhere, and a walk must have an end. */
static int leave_handler(struct afz_unwind *u)
{
        uint64_t pc, sp, fp;
        if (u->in_handler || !peek(u, u->sp + KEPT_PC, &pc) || !peek(u, u->sp + KEPT_SP, &sp) ||
            !peek(u, u->sp + KEPT_FP, &fp))
                return 0;
        u->in_handler = 1;
        if (pc < LOWEST_CODE)
                return 0;
        u->pc = pc + 1; /* as if it were a return address */
        u->sp = sp;
        u->fp = fp;
        return 1;
}

int afz_unwind_next(struct afz_unwind *u)
{
        struct afz_cfi_rule rule;
        uint64_t pc, fp = u->fp, cfa;
        if (!recall(u->pc - 1, &rule)) /* within the call, not after it */
                rule = work_out(u, u->pc - 1);
        if (rule.kind == AFZ_CFI_END)
                return 0;
        if (rule.kind == AFZ_CFI_SIGNAL)
                return leave_handler(u);
        cfa = (rule.kind == AFZ_CFI_SP ? u->sp : u->fp) + (uint64_t)(int64_t)rule.cfa;
        if (rule.kind == AFZ_CFI_DEREF && (!peek(u, cfa, &cfa) || !peek(u, u->fp, &fp)))
                return 0;
        if (cfa <= u->sp || cfa - u->sp > FURTHEST_BYTES ||
            !peek(u, cfa + (uint64_t)(int64_t)rule.ra, &pc) ||
            (rule.fp != 0 && !peek(u, cfa + (uint64_t)(int64_t)rule.fp, &fp)))
                return 0;
        pc = BARE(pc);
        if (pc <= LOWEST_CODE || (rule.kind == AFZ_CFI_GUESS && !is_known_code(u, pc)))
                return 0;
        u->fp = fp;
        u->sp = cfa;
        u->pc = pc;
        return 1;
}

__attribute__((noinline)) int afz_unwind_begin(struct afz_unwind *u, struct afz_book *book)
{
        u->book = book;
        u->window_at = u->window_size = 0;
        u->in_handler = 0;
        HERE(u);
        u->pc++; /* as if it were a return address */
        find_bounds(u);
        return u->sp != 0 && afz_unwind_next(u) ? 0 : -1;
}
