/* Any bytes as a pack: what comes out is in order and within bounds, and all of it comes out of a
 * pack that is made of it again. */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "pack.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int holds)
{
        if (!holds)
                abort();
}

static void check_text(const char *text, size_t cap)
{
        require(text && strlen(text) < cap);
        for (; *text; text++)
                require((unsigned char)*text >= 0x20 && *text != 0x7f);
}

static void check_column(const struct afz_column *c)
{
        require(c->count > 0);
        for (size_t i = 0; i < c->count; i++) {
                const struct afz_point *p = &c->point[i];
                require(p->span_ms == 0 && p->least == p->mean && p->most == p->mean);
                require(i == 0 || p->t_ms >= c->point[i - 1].t_ms);
        }
}

static void check(const struct afz_flight *f)
{
        require(f->tracks <= AFZ_PACK_SUBJECTS);
        for (size_t i = 0; i < f->tracks; i++) {
                const struct afz_track *t = &f->track[i];
                require(t->subject.kind > AFZ_KIND_NONE && t->subject.kind < AFZ_KIND_COUNT);
                require(t->first_ms <= t->last_ms && t->last_ms <= f->end_ms);
                check_text(t->name, AFZ_PACK_NAME_CAP);
                check_text(t->detail, AFZ_PACK_DETAIL_CAP);
                check_text(t->note, AFZ_PACK_NOTE_CAP);
                for (size_t c = 0; c < t->columns; c++)
                        check_column(&t->column[c]);
        }
        for (size_t i = 0; i < f->marks; i++) {
                require((unsigned)f->mark[i].kind < AFZ_MARK_COUNT);
                require(i == 0 || f->mark[i].t_ms >= f->mark[i - 1].t_ms);
                bool lines = f->mark[i].kind == AFZ_MARK_STACK || f->mark[i].kind == AFZ_MARK_SITE;
                for (char *c = f->mark[i].text; lines && *c; c++)
                        *c = *c == '\n' ? ' ' : *c; /* allowed there */
                check_text(f->mark[i].text, AFZ_PACK_MARK_CAP);
        }
}

static void check_again(const struct afz_flight *f)
{
        static unsigned char buf[1 << 20];
        struct afz_pack pack = {.buf = buf, .cap = sizeof buf};
        struct afz_flight again;
        afz_pack_start(&pack, 0, 0);
        for (size_t i = 0; i < f->marks; i++)
                require(afz_pack_mark(&pack, f->mark[i].t_ms * UINT64_C(1000000), f->mark[i].kind,
                                      f->mark[i].code, f->mark[i].text) == 0);
        afz_flight_init(&again);
        require(afz_unpack(buf, pack.len, NULL, &again) == 0);
        require(again.marks == f->marks);
        for (size_t i = 0; i < f->marks; i++)
                require(again.mark[i].t_ms == f->mark[i].t_ms &&
                        again.mark[i].code == f->mark[i].code);
        afz_flight_done(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct afz_flight f;
        if (size > 4096)
                return 0;
        afz_flight_init(&f);
        int r = afz_unpack(data, size, NULL, &f);
        require(r == 0 || r == -EBADMSG);
        check(&f);
        check_again(&f);
        afz_flight_done(&f);
        return 0;
}
