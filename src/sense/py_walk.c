#include "py_walk.h"

#include <errno.h>
#include <string.h>

#include "py_line.h"
#include "py_text.h"

enum {
        MOST_THREADS = 16384,
        MOST_SKIPPED = 64, /* frames that are none of Python's own, beyond one for each that is */
        UNIT = 2,          /* bytes in a code unit, in all versions */
        OWNED_BY_GENERATOR = 1, /* its frame stays where it is, and is never half set up */
        OWNED_BY_C = 3, /* from here on: put there by the interpreter for itself (from 3.12 on) */
        STACK_REF_TAG = 3, /* 3.14: low bits of a pointer to an object that say how it is held */
};

/* An error that another read could not have: nobody is there, or we may not look. */
static bool is_final(int r)
{
        return r < 0 && r != -EFAULT && r != -EBADMSG;
}

static int read_field(const struct afz_py_place *p, uint64_t object, enum afz_py_field f,
                      uint64_t *ret)
{
        return afz_py_read_u64(&p->memory, object + p->layout.at[f], ret);
}

/* Notices a chain that bites its tail: a mark lags behind, is moved ever more seldom, and is met
 * again. */
struct lap {
        uint64_t mark;
        size_t steps, next_mark;
};

static bool is_lapped(struct lap *lap, uint64_t at)
{
        if (lap->steps > 0 && at == lap->mark)
                return true;
        if (lap->steps++ == lap->next_mark) {
                lap->mark = at;
                lap->next_mark = 2 * lap->steps;
        }
        return false;
}

/* Goes over all thread states until `each` says something other than 0. */
static int each_thread(const struct afz_py_place *p,
                       int (*each)(const struct afz_py_place *p, uint64_t state, void *context),
                       void *context)
{
        uint64_t interpreter, state;
        struct lap interpreters = {0};
        unsigned steps = 0;
        int r = read_field(p, p->runtime, AFZ_PY_RUNTIME_INTERPRETERS, &interpreter);
        while (r == 0 && interpreter != 0 && !is_lapped(&interpreters, interpreter)) {
                struct lap states = {0};
                if (steps++ >= MOST_THREADS)
                        return 0;
                r = read_field(p, interpreter, AFZ_PY_INTERPRETER_THREADS, &state);
                while (r == 0 && state != 0 && !is_lapped(&states, state)) {
                        if (steps++ >= MOST_THREADS)
                                return 0;
                        r = each(p, state, context);
                        if (r == 0)
                                r = read_field(p, state, AFZ_PY_THREAD_NEXT, &state);
                }
                if (r == 0)
                        r = read_field(p, interpreter, AFZ_PY_INTERPRETER_NEXT, &interpreter);
        }
        return r;
}

static int innermost(const struct afz_py_place *p, uint64_t state, uint64_t *ret)
{
        int r = read_field(p, state, AFZ_PY_THREAD_FRAME, ret);
        if (r == 0 && afz_py_has(&p->layout, AFZ_PY_CFRAME_CURRENT))
                r = *ret == 0 ? -EFAULT : read_field(p, *ret, AFZ_PY_CFRAME_CURRENT, ret);
        return r;
}

/* A state is made by the thread that starts another and goes by its maker's numbers at first. It
 * has no frame until its own thread runs, and one without a frame isn't worth finding. */
static bool has_frame(const struct afz_py_place *p, uint64_t state)
{
        uint64_t frame;
        return innermost(p, state, &frame) == 0 && frame != 0;
}

struct wanted {
        enum afz_py_field field;
        uint64_t value, state;
};

static int match(const struct afz_py_place *p, uint64_t state, void *context)
{
        struct wanted *w = context;
        uint64_t value;
        int r = read_field(p, state, w->field, &value);
        if (r < 0 || value != w->value || !has_frame(p, state))
                return r;
        w->state = state;
        return 1;
}

/* What the C library notes of a thread begins at pthread_self(); glibc has the id at 720 (x86-64)
 * or 208 (arm64), others nearer. */
#define NOTE_BYTES 1024
#define NOTE_WORDS (NOTE_BYTES / sizeof(uint32_t))

struct note {
        size_t words;
        uint32_t word[NOTE_WORDS];
};

/* As much of it as can be read: it may end with the page. */
static int read_note(const struct afz_py_place *p, uint64_t ident, struct note *note)
{
        enum { PIECE = 128 };
        note->words = 0;
        if (ident == 0 || ident % 8 != 0)
                return 0;
        while (note->words < NOTE_WORDS) {
                int r = afz_py_read(&p->memory, ident + note->words * sizeof(uint32_t),
                                    note->word + note->words, PIECE);
                if (r < 0)
                        return is_final(r) ? r : 0;
                note->words += PIECE / sizeof(uint32_t);
        }
        return 0;
}

struct probe {
        uint32_t tid, main_tid;
        uint64_t main_ident, state;
        struct note main;
        unsigned char hits[NOTE_WORDS]; /* how many threads have `tid` there, 2 for more */
        uint64_t hit_state[NOTE_WORDS];
};

static int probe_thread(const struct afz_py_place *p, uint64_t state, void *context)
{
        struct probe *b = context;
        struct note note;
        uint64_t ident;
        int r = read_field(p, state, AFZ_PY_THREAD_IDENT, &ident);
        if (r < 0 || ident == b->main_ident || !has_frame(p, state))
                return r;
        r = read_note(p, ident, &note);
        size_t words = note.words < b->main.words ? note.words : b->main.words;
        for (size_t i = 0; r == 0 && i < words; i++) {
                if (b->main.word[i] != b->main_tid || note.word[i] != b->tid)
                        continue;
                b->hits[i] = b->hits[i] == 0 ? 1 : 2;
                b->hit_state[i] = state;
        }
        return r;
}

/* All places that speak must speak for one and the same thread. */
static int take_hit(struct probe *b)
{
        b->state = 0;
        for (size_t i = 0; i < NOTE_WORDS; i++) {
                if (b->hits[i] == 0)
                        continue;
                if (b->hits[i] > 1 || (b->state != 0 && b->state != b->hit_state[i]))
                        return -ENOTSUP;
                b->state = b->hit_state[i];
        }
        return b->state == 0 ? -ENOENT : 0;
}

static int find_by_note(const struct afz_py_place *p, uint32_t tid, uint32_t main_tid,
                        uint64_t *ret_state)
{
        struct probe b = {.tid = tid, .main_tid = main_tid};
        bool known = false;
        int r = read_field(p, p->runtime, AFZ_PY_RUNTIME_MAIN_THREAD, &b.main_ident);
        if (r == 0)
                r = read_note(p, b.main_ident, &b.main);
        if (r < 0)
                return r;
        for (size_t i = 0; i < b.main.words; i++)
                known |= b.main.word[i] == main_tid;
        if (!known)
                return -ENOTSUP; /* Python was started in another thread than the process's first */
        if (tid == main_tid) {
                struct wanted w = {.field = AFZ_PY_THREAD_IDENT, .value = b.main_ident};
                r = each_thread(p, match, &w);
                b.state = w.state;
                r = r < 0 ? r : r == 0 ? -ENOENT : 0;
        } else {
                r = each_thread(p, probe_thread, &b);
                r = r < 0 ? r : take_hit(&b);
        }
        if (r == 0)
                *ret_state = b.state;
        return r;
}

int afz_py_walk_find(const struct afz_py_place *p, uint32_t tid, uint32_t main_tid,
                     uint64_t *ret_state)
{
        struct wanted w = {.field = AFZ_PY_THREAD_NATIVE_ID, .value = tid};
        if (afz_py_has(&p->layout, AFZ_PY_THREAD_NATIVE_ID)) {
                int r = each_thread(p, match, &w);
                if (r == 1)
                        *ret_state = w.state;
                if (r != 0)
                        return r < 0 ? r : 0;
        }
        if (!afz_py_has(&p->layout, AFZ_PY_RUNTIME_MAIN_THREAD))
                return -ENOENT;
        return find_by_note(p, tid, main_tid, ret_state);
}

/* A frame or a code object, read in one piece so that its fields belong together. */
struct object {
        const struct afz_py_layout *l;
        unsigned char bytes[AFZ_PY_OBJECT_CAP];
};

static int read_object(const struct afz_py_place *p, uint64_t at, size_t bytes, struct object *o)
{
        o->l = &p->layout;
        return afz_py_read(&p->memory, at, o->bytes, bytes);
}

static uint64_t pointer_of(const struct object *o, enum afz_py_field f)
{
        uint64_t v;
        memcpy(&v, o->bytes + o->l->at[f], sizeof v);
        return v;
}

static int32_t int_of(const struct object *o, enum afz_py_field f)
{
        int32_t v;
        memcpy(&v, o->bytes + o->l->at[f], sizeof v);
        return v;
}

static unsigned owner_of(const struct object *frame)
{
        if (!afz_py_has(frame->l, AFZ_PY_FRAME_OWNER))
                return 0;
        return frame->bytes[frame->l->at[AFZ_PY_FRAME_OWNER]];
}

/* Where in its code a frame stands, in bytes from the first instruction; far out of range when the
 * pointer is garbage, which the line table then doesn't know. */
static int64_t offset_of(const struct object *frame, uint64_t code_at)
{
        const struct afz_py_layout *l = frame->l;
        if (!afz_py_has(l, AFZ_PY_CODE_INSTRUCTIONS)) {
                int64_t last = int_of(frame, AFZ_PY_FRAME_INSTRUCTION);
                return l->lines == AFZ_PY_LINES_LNOTAB ? last : last * UNIT;
        }
        uint64_t first = code_at + l->at[AFZ_PY_CODE_INSTRUCTIONS];
        return (int64_t)(pointer_of(frame, AFZ_PY_FRAME_INSTRUCTION) - first);
}

static bool is_incomplete(const struct object *frame, const struct object *code, int64_t offset)
{
        if (!afz_py_has(frame->l, AFZ_PY_CODE_FIRST_TRACEABLE) ||
            owner_of(frame) == OWNED_BY_GENERATOR)
                return false;
        return offset < (int64_t)int_of(code, AFZ_PY_CODE_FIRST_TRACEABLE) * UNIT;
}

static int read_text(const struct afz_py_place *p, const struct object *code, enum afz_py_field f,
                     enum afz_py_keep keep, char *ret, size_t cap)
{
        int r = afz_py_text(&p->memory, &p->layout, pointer_of(code, f), keep, ret, cap);
        if (r < 0)
                memcpy(ret, "?", 2);
        return is_final(r) ? r : 0;
}

static int describe(const struct afz_py_place *p, const struct object *code, int64_t offset,
                    struct afz_py_frame *ret)
{
        int r = read_text(p, code, AFZ_PY_CODE_FILE, AFZ_PY_KEEP_END, ret->file, sizeof ret->file);
        if (r == 0)
                r = read_text(p, code, AFZ_PY_CODE_NAME, AFZ_PY_KEEP_START, ret->function,
                              sizeof ret->function);
        if (r < 0)
                return r;
        r = afz_py_line(&p->memory, &p->layout, pointer_of(code, AFZ_PY_CODE_LINES),
                        int_of(code, AFZ_PY_CODE_FIRST_LINE), offset);
        ret->line = r > 0 ? r : 0;
        return is_final(r) ? r : 0;
}

/* One frame: 1 when it was one of Python's own, 0 when it is to be passed over, -EBADMSG when it is
 * none. */
static int read_frame(const struct afz_py_place *p, uint64_t at, struct afz_py_frame *ret,
                      uint64_t *ret_back)
{
        struct object frame, code;
        int r = read_object(p, at, afz_py_layout_frame_bytes(&p->layout), &frame);
        if (r < 0)
                return r;
        *ret_back = pointer_of(&frame, AFZ_PY_FRAME_BACK);
        if (owner_of(&frame) >= OWNED_BY_C)
                return 0;
        uint64_t code_at = pointer_of(&frame, AFZ_PY_FRAME_CODE);
        if (p->layout.minor >= 14)
                code_at &= ~(uint64_t)STACK_REF_TAG;
        r = read_object(p, code_at, afz_py_layout_code_bytes(&p->layout), &code);
        if (r < 0)
                return r;
        if (pointer_of(&code, AFZ_PY_OBJECT_TYPE) != p->code_type)
                return -EBADMSG;
        int64_t offset = offset_of(&frame, code_at);
        if (is_incomplete(&frame, &code, offset))
                return 0;
        r = describe(p, &code, offset, ret);
        return r < 0 ? r : 1;
}

int afz_py_walk_frames(const struct afz_py_place *p, uint64_t state, struct afz_py_frame *ret,
                       size_t cap)
{
        struct lap lap = {0};
        size_t n = 0, skipped = 0;
        uint64_t at, back;
        int r = innermost(p, state, &at);
        while (r >= 0 && at != 0 && n < cap && skipped < cap + MOST_SKIPPED &&
               !is_lapped(&lap, at)) {
                r = read_frame(p, at, &ret[n], &back);
                if (r < 0)
                        break;
                skipped += r == 0;
                n += (size_t)r;
                at = back;
        }
        return is_final(r) ? r : (int)n;
}

int afz_py_walk_check(const struct afz_py_place *p)
{
        uint64_t interpreter, state, owner;
        int r = read_field(p, p->runtime, AFZ_PY_RUNTIME_INTERPRETERS, &interpreter);
        if (r == 0 && interpreter == 0)
                return -EAGAIN;
        if (r == 0)
                r = read_field(p, interpreter, AFZ_PY_INTERPRETER_THREADS, &state);
        if (r == 0 && state == 0)
                return -EAGAIN;
        if (r == 0)
                r = read_field(p, state, AFZ_PY_THREAD_INTERPRETER, &owner);
        if (r == 0)
                return owner == interpreter ? 0 : -ENOTSUP;
        return is_final(r) ? r : -ENOTSUP;
}
