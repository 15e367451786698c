#include "py.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "module.h"
#include "py_line.h"
#include "py_text.h"
#include "py_walk.h"

enum {
        UNIT = 2,               /* bytes in a code unit, in all versions */
        OWNED_BY_GENERATOR = 1, /* its frame stays where it is, and is never half set up */
        OWNED_BY_C = 3,         /* from here on: put there by the interpreter for itself */
        STACK_REF_TAG = 3,      /* 3.14: low bits of a pointer that say how it is held */
        MOST_STATES = 4096,     /* threads that are gone through for one's state */
        MOST_STEPS = 4096,      /* frames, with those that do not count */
        MOST_KEYS = 128,        /* of pthread_key_create() that are looked through */
        CHECKED_WALKS = 8,      /* of each thread, through the kernel */
        WRONG_CODE = 8,         /* times that code was none; then the layout is not believed */
        TYPE_BASIC_SIZE = 32,   /* where a type has the size of its objects, since 3.0 */
        NAMES = 4096,           /* frames whose number is remembered */
};

static struct {
        struct afz_py_place place;
        struct afz_module module; /* the interpreter's own */
        uint64_t frame_bytes, code_bytes, state_bytes;
        _Atomic int is_on, is_sound; /* sound: checked against a state that is there */
        _Atomic int wrong;
        _Atomic int key; /* + 1; where a thread has its state */
        int free_threaded;
        _Atomic uint64_t generation; /* of books */
} py;

static AFZ_TLS struct {
        uint64_t state;
        int walks;
} own;

static struct {
        _Atomic uint64_t key, frame;
} names[NAMES];

/* ---- reading ---- */

static int read_checked(void *context, uint64_t at, void *ret, size_t bytes)
{
        (void)context;
        return afz_read_self(at, ret, bytes) == bytes ? 0 : -EFAULT;
}

/* Only what looks like a pointer of this machine to an object. */
__attribute__((no_sanitize("address", "thread"))) static void copy(void *to, uint64_t at,
                                                                   size_t bytes)
{
        const volatile uint64_t *from = (const volatile uint64_t *)(uintptr_t)at; /* NOLINT */
        for (size_t i = 0; i < bytes / 8; i++) {
                uint64_t value = from[i];
                memcpy((unsigned char *)to + 8 * i, &value, sizeof value);
        }
}

static bool fetch(const struct afz_py_walk *w, uint64_t at, void *ret, size_t bytes)
{
        if (at < 4096 || at % 8 != 0 || at >> 47 != 0)
                return false;
        if (!w->is_direct)
                return read_checked(NULL, at, ret, bytes) == 0;
        copy(ret, at, bytes);
        return true;
}

static uint64_t word(const unsigned char *object, enum afz_py_field f)
{
        uint64_t v;
        memcpy(&v, object + py.place.layout.at[f], sizeof v);
        return v;
}

static int32_t number(const unsigned char *object, enum afz_py_field f)
{
        int32_t v;
        memcpy(&v, object + py.place.layout.at[f], sizeof v);
        return v;
}

static bool has(enum afz_py_field f)
{
        return afz_py_has(&py.place.layout, f);
}

/* ---- at start ---- */

static uint64_t symbol(const char *name)
{
        return (uint64_t)(uintptr_t)dlsym(RTLD_DEFAULT, name);
}

/* Before 3.11 an interpreter does not export its version, but what came with each is. */
static uint32_t version(void)
{
        uint64_t at = symbol("Py_Version"), hex = 0;
        if (at != 0)
                return afz_read_self(at, &hex, sizeof hex) == sizeof hex ? (uint32_t)hex : 0;
        if (symbol("PyModule_AddObjectRef") != 0)
                return 0x030a0000;
        return symbol("PyObject_CallNoArgs") != 0 ? 0x03090000 : 0;
}

static int take_layout(uint32_t hex)
{
        unsigned char published[AFZ_PY_PUBLISHED_BYTES];
        enum { COOKIE = 8, FREE_THREADED = 16 };
        uint64_t flag;
        if ((hex >> 16 & 0xff) < 13) /* builds that count references are laid out otherwise */
                return symbol("_Py_NegativeRefcount") != 0
                               ? -ENOTSUP
                               : afz_py_layout_table(hex >> 16 & 0xff, &py.place.layout);
        if (afz_read_self(py.place.runtime, published, sizeof published) != sizeof published)
                return -ENOTSUP;
        memcpy(&flag, published + FREE_THREADED, sizeof flag);
        py.free_threaded = memcmp(published, "xdebugpy", COOKIE) == 0 && flag != 0;
        return afz_py_layout_published(hex, published, &py.place.layout);
}

static uint64_t size_of_type(const char *name)
{
        uint64_t at = symbol(name), size = 0;
        if (at == 0 || afz_read_self(at + TYPE_BASIC_SIZE, &size, sizeof size) != sizeof size)
                return 0;
        return size;
}

/* What the interpreter's types say of their objects' sizes must fit what we think is in them. */
static bool sizes_agree(void)
{
        const struct afz_py_layout *l = &py.place.layout;
        uint64_t code = size_of_type("PyCode_Type");
        if (size_of_type("PyBytes_Type") != l->at[AFZ_PY_BYTES_DATA] + 1u ||
            size_of_type("PyUnicode_Type") != l->at[AFZ_PY_TEXT_WIDE] + 8u)
                return false;
        if (has(AFZ_PY_CODE_INSTRUCTIONS))
                return code == l->at[AFZ_PY_CODE_INSTRUCTIONS];
        uint64_t frame = size_of_type("PyFrame_Type");
        return code >= py.code_bytes && code < py.code_bytes + 64 && frame >= py.frame_bytes &&
               frame < 512;
}

static void measure(void)
{
        static const enum afz_py_field wanted[] = {AFZ_PY_THREAD_INTERPRETER, AFZ_PY_THREAD_IDENT,
                                                   AFZ_PY_THREAD_FRAME};
        for (unsigned i = 0; i < sizeof wanted / sizeof wanted[0]; i++)
                if (py.place.layout.at[wanted[i]] + 8u > py.state_bytes)
                        py.state_bytes = py.place.layout.at[wanted[i]] + 8u;
        py.frame_bytes = (afz_py_layout_frame_bytes(&py.place.layout) + 7) & ~UINT64_C(7);
        py.code_bytes = (afz_py_layout_code_bytes(&py.place.layout) + 7) & ~UINT64_C(7);
}

static void write_version(struct afz_book *book, uint32_t hex)
{
        char *to = book->python;
        unsigned minor = hex >> 16 & 0xff;
        memcpy(to, "CPython 3.", 10);
        to += 10;
        if (minor >= 10)
                *to++ = (char)('0' + minor / 10);
        *to++ = (char)('0' + minor % 10);
        *to = '\0';
}

void afz_py_start(void)
{
        struct afz_book *book = afz_book_seen();
        py.place.memory.read = read_checked;
        py.place.runtime = symbol("_PyRuntime");
        py.place.code_type = symbol("PyCode_Type");
        if (py.place.runtime == 0 || py.place.code_type == 0 ||
            afz_module_find(NULL, py.place.code_type, &py.module) < 0)
                return;
        uint32_t hex = version();
        if (hex >> 24 != 3 || take_layout(hex) < 0) {
                afz_say(py.free_threaded
                                ? "This Python is free-threaded: its small objects and its lines "
                                  "are not told."
                                : "This version or build of Python is not known: its lines are not "
                                  "told.");
                return;
        }
        measure();
        if (py.state_bytes > AFZ_PY_STATE_CAP || !sizes_agree()) {
                afz_say("This Python is laid out otherwise than its version says: its lines are "
                        "not told.");
                return;
        }
        if (book)
                write_version(book, hex);
        atomic_store(&py.generation, 1);
        atomic_store(&py.is_on, 1);
}

int afz_py_is_free_threaded(void)
{
        return py.free_threaded;
}

void afz_py_new_book(struct afz_book *book)
{
        atomic_fetch_add(&py.generation, 1);
        if (atomic_load(&py.is_on))
                write_version(book, py.place.layout.minor << 16);
}

int afz_py_has_code(uint64_t pc)
{
        return pc >= py.module.base && pc < py.module.end &&
               atomic_load_explicit(&py.is_on, memory_order_relaxed);
}

static void give_up(struct afz_book *book)
{
        atomic_store(&py.is_on, 0);
        afz_book_say(book, "Python's frames are not where they should be: its lines are not told.");
}

/* ---- the thread's state ---- */

static bool is_ours(const unsigned char *state)
{
        return word(state, AFZ_PY_THREAD_IDENT) == (uint64_t)pthread_self();
}

/* Through the kernel: states of other threads come and go. */
static uint64_t search_state(void)
{
        const struct afz_py_place *p = &py.place;
        uint64_t interpreter = 0, state = 0, ident;
        unsigned states = 0;
        (void)afz_py_read_u64(&p->memory, p->runtime + p->layout.at[AFZ_PY_RUNTIME_INTERPRETERS],
                              &interpreter);
        while (interpreter != 0 && states < MOST_STATES) {
                if (afz_py_read_u64(&p->memory,
                                    interpreter + p->layout.at[AFZ_PY_INTERPRETER_THREADS],
                                    &state) < 0)
                        return 0;
                while (state != 0 && states++ < MOST_STATES) {
                        if (afz_py_read_u64(&p->memory, state + p->layout.at[AFZ_PY_THREAD_IDENT],
                                            &ident) < 0)
                                return 0;
                        if (ident == (uint64_t)pthread_self())
                                return state;
                        if (afz_py_read_u64(&p->memory, state + p->layout.at[AFZ_PY_THREAD_NEXT],
                                            &state) < 0)
                                return 0;
                }
                if (afz_py_read_u64(&p->memory, interpreter + p->layout.at[AFZ_PY_INTERPRETER_NEXT],
                                    &interpreter) < 0)
                        return 0;
        }
        return 0;
}

/* Python makes its key when it begins, before any library that keeps the same pointer. */
static void learn_key(uint64_t state)
{
        for (int key = 0; key < MOST_KEYS; key++)
                if ((uint64_t)(uintptr_t)pthread_getspecific((pthread_key_t)key) == state) {
                        atomic_store(&py.key, key + 1);
                        return;
                }
}

static uint64_t state_by_key(void)
{
        int key = atomic_load_explicit(&py.key, memory_order_relaxed);
        return key == 0 ? 0 : (uint64_t)(uintptr_t)pthread_getspecific((pthread_key_t)(key - 1));
}

/* The state of this thread, copied into w->state; whether it may be read as it is afterwards. */
static bool find_state(struct afz_py_walk *w, struct afz_book *book)
{
        uint64_t state = state_by_key();
        w->is_direct = state != 0 && state == own.state && own.walks > CHECKED_WALKS;
        if (w->is_direct)
                return fetch(w, state, w->state, py.state_bytes) && is_ours(w->state);
        if (own.state == 0 || !fetch(w, own.state, w->state, py.state_bytes) ||
            !is_ours(w->state)) {
                own.state = search_state();
                own.walks = 0;
                if (own.state == 0 || !fetch(w, own.state, w->state, py.state_bytes) ||
                    !is_ours(w->state))
                        return false;
        }
        if (!atomic_load(&py.is_sound)) {
                int r = afz_py_walk_check(&py.place);
                if (r == -ENOTSUP)
                        give_up(book);
                if (r < 0)
                        return false;
                atomic_store(&py.is_sound, 1);
        }
        if (state != own.state)
                learn_key(own.state);
        own.walks++;
        return true;
}

/* ---- frames ---- */

static uint64_t mix(uint64_t hash, uint64_t value)
{
        hash = (hash ^ value) * UINT64_C(0xff51afd7ed558ccd);
        return hash ^ (hash >> 32);
}

/* Where in its code a frame stands, in bytes from the first instruction. */
static int64_t offset_of(const struct afz_py_walk *w, uint64_t code)
{
        const struct afz_py_layout *l = &py.place.layout;
        if (!has(AFZ_PY_CODE_INSTRUCTIONS)) {
                int64_t last = number(w->frame, AFZ_PY_FRAME_INSTRUCTION);
                return l->lines == AFZ_PY_LINES_LNOTAB ? last : last * UNIT;
        }
        return (int64_t)(word(w->frame, AFZ_PY_FRAME_INSTRUCTION) -
                         (code + l->at[AFZ_PY_CODE_INSTRUCTIONS]));
}

static unsigned owner_of(const struct afz_py_walk *w)
{
        return has(AFZ_PY_FRAME_OWNER) ? w->frame[py.place.layout.at[AFZ_PY_FRAME_OWNER]] : 0;
}

static bool is_incomplete(const struct afz_py_walk *w, int64_t offset)
{
        return has(AFZ_PY_CODE_FIRST_TRACEABLE) && owner_of(w) != OWNED_BY_GENERATOR &&
               offset < (int64_t)number(w->code, AFZ_PY_CODE_FIRST_TRACEABLE) * UNIT;
}

/* The import system's own: that it was an import, one of them says; there are six for each. */
static bool is_import(const char *file)
{
        return strncmp(file, "<frozen importlib._bootstrap", 28) == 0;
}

/* As the keeper tells them apart: what is installed or comes with Python is not the user's. */
static bool is_library(const char *file)
{
        return strstr(file, "/site-packages/") || strstr(file, "/dist-packages/") ||
               strstr(file, "/lib/python3") || strncmp(file, "<frozen", 7) == 0;
}

static AFZ_COLD uint64_t describe(struct afz_py_walk *w, struct afz_book *book, int64_t offset)
{
        const struct afz_py_place *p = &py.place;
        if (afz_py_text(&p->memory, &p->layout, word(w->code, AFZ_PY_CODE_FILE), AFZ_PY_KEEP_END,
                        w->file, sizeof w->file) < 0)
                memcpy(w->file, "?", 2);
        if (afz_py_text(&p->memory, &p->layout, word(w->code, AFZ_PY_CODE_NAME), AFZ_PY_KEEP_START,
                        w->function, sizeof w->function) < 0)
                memcpy(w->function, "?", 2);
        int line = afz_py_line(&p->memory, &p->layout, word(w->code, AFZ_PY_CODE_LINES),
                               number(w->code, AFZ_PY_CODE_FIRST_LINE), offset);
        uint64_t most = (1u << AFZ_FRAME_LINE_BITS) - 1;
        uint64_t shown = line < 0 ? 0 : (uint64_t)line > most ? most : (uint64_t)line;
        uint64_t whose = (is_library(w->file) ? AFZ_FRAME_LIBRARY : 0) |
                         (is_import(w->file) ? AFZ_FRAME_IMPORT : 0);
        return AFZ_FRAME_PYTHON | whose | shown << 36 |
               (uint64_t)afz_book_name(book, w->file) << 18 | afz_book_name(book, w->function);
}

/* The number of a frame, remembered by what its code says of itself: another code object that comes
 * to lie at the same address has other names. */
static uint64_t number_of(struct afz_py_walk *w, struct afz_book *book, uint64_t code,
                          int64_t offset)
{
        uint64_t key = mix(atomic_load_explicit(&py.generation, memory_order_relaxed), code);
        key = mix(key, (uint64_t)offset);
        key = mix(key, word(w->code, AFZ_PY_CODE_FILE));
        key = mix(key, word(w->code, AFZ_PY_CODE_NAME));
        key = mix(key, (uint32_t)number(w->code, AFZ_PY_CODE_FIRST_LINE)) | 1;
        unsigned at = (unsigned)(key >> 20) % NAMES;
        if (atomic_load(&names[at].key) == key) {
                uint64_t frame = atomic_load(&names[at].frame);
                if (atomic_load(&names[at].key) == key)
                        return frame;
        }
        uint64_t frame = describe(w, book, offset);
        atomic_store(&names[at].key, 0);
        atomic_store(&names[at].frame, frame);
        atomic_store(&names[at].key, key);
        return frame;
}

/* One frame: 1 and its number, 0 when it is to be passed over, -1 at the end. */
static int take_frame(struct afz_py_walk *w, struct afz_book *book, uint64_t at, uint64_t *ret,
                      uint64_t *ret_back)
{
        if (!fetch(w, at, w->frame, py.frame_bytes))
                return -1;
        *ret_back = word(w->frame, AFZ_PY_FRAME_BACK);
        if (owner_of(w) >= OWNED_BY_C)
                return 0;
        uint64_t code = word(w->frame, AFZ_PY_FRAME_CODE);
        if (py.place.layout.minor >= 14)
                code &= ~(uint64_t)STACK_REF_TAG;
        if (!fetch(w, code, w->code, py.code_bytes) ||
            word(w->code, AFZ_PY_OBJECT_TYPE) != py.place.code_type) {
                if (atomic_fetch_add(&py.wrong, 1) == WRONG_CODE)
                        give_up(book);
                return -1;
        }
        int64_t offset = offset_of(w, code);
        if (is_incomplete(w, offset))
                return 0;
        *ret = number_of(w, book, code, offset);
        return 1;
}

/* Its innermost frame; 0: there is none. */
static uint64_t first_frame(struct afz_py_walk *w, struct afz_book *book)
{
        uint64_t at, cframe;
        if (!atomic_load(&py.is_on) || !find_state(w, book))
                return 0;
        at = word(w->state, AFZ_PY_THREAD_FRAME);
        if (!has(AFZ_PY_CFRAME_CURRENT))
                return at;
        return fetch(w, at + py.place.layout.at[AFZ_PY_CFRAME_CURRENT], &cframe, sizeof cframe)
                       ? cframe
                       : 0;
}

int afz_py_runs(struct afz_py_walk *w, struct afz_book *book)
{
        return first_frame(w, book) != 0;
}

unsigned afz_py_frames(struct afz_py_walk *w, struct afz_book *book, uint64_t *ret, unsigned cap)
{
        uint64_t at = first_frame(w, book);
        unsigned n = 0;
        for (unsigned steps = 0; at != 0 && n < cap && steps < MOST_STEPS; steps++) {
                uint64_t back = 0;
                int r = take_frame(w, book, at, &ret[n], &back);
                if (r < 0)
                        break;
                if (r > 0 && !(n > 0 && (ret[n] & ret[n - 1] & AFZ_FRAME_IMPORT)))
                        n++;
                at = back;
        }
        return n;
}
