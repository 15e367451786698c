#ifndef AFZ_BOOK_FIXTURE_H
#define AFZ_BOOK_FIXTURE_H
/* A book as a test's state, and what may stand in one. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "keeper_book.h"

#define BOOK_TEST(name) cmocka_unit_test_setup_teardown(name, make, drop)

static inline int make(void **state)
{
        *state = calloc(1, AFZ_BOOK_BYTES);
        return *state ? 0 : -1;
}

static inline int drop(void **state)
{
        free(*state);
        return 0;
}

static inline uint64_t python(uint32_t line, uint32_t file, uint32_t function)
{
        return AFZ_FRAME_PYTHON | (uint64_t)line << 36 | (uint64_t)(file / 4) << 18 | function / 4;
}

/* Not strcpy(): with a sanitizer in between gcc takes the book for an array of nothing. */
static inline void put_text(struct afz_book *b, unsigned at, const char *text)
{
        snprintf(b->texts + at, AFZ_BOOK_TEXT_CAP, "%s", text);
}

/* A whole site at a place: load() of train.py, called by main(). */
static inline void write_site(struct afz_book *b, unsigned place)
{
        struct afz_book_site *s = &b->site[place];
        put_text(b, 0, "?");
        put_text(b, 4, "/home/me/train.py");
        put_text(b, 24, "load");
        put_text(b, 32, "main");
        b->frame[0] = python(33, 4, 24);
        b->frame[1] = python(40, 4, 32);
        s->frame = 0;
        s->frames = 2;
        s->first_ns = 1000;
        s->live_bytes = 5 << 20;
        s->live_blocks = 5;
        s->total_bytes = 9 << 20;
        s->kind = AFZ_SITE_HEAP;
}

static inline void set_module(struct afz_book *b, unsigned at, uint64_t base, uint64_t since_ns,
                              const char *path)
{
        b->module[at].end = base + 0x1000;
        b->module[at].shift = base;
        b->module[at].since_ns = since_ns;
        strcpy(b->module[at].path, path);
        b->module[at].base = base;
}

#endif
