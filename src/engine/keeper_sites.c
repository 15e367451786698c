#include "keeper_sites.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "map.h"

enum { MOST_NAMES = 32768 };

/* ---- hashes ---- */

static uint64_t mix(uint64_t hash, uint64_t word)
{
        hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        return hash ^ hash >> 29;
}

static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t n)
{
        const unsigned char *p = bytes;
        for (size_t i = 0; i < n; i++)
                hash = (hash ^ p[i]) * UINT64_C(0x100000001b3);
        return mix(hash, n);
}

/* ---- names ---- */

static uint32_t add_name(struct afz_sites *s, uint64_t hash, const char *text)
{
        char *copy = s->names < MOST_NAMES ? strdup(text) : NULL;
        if (!copy || afz_map_put(s->by_name, hash, s->names) < 0) {
                free(copy);
                return 0;
        }
        s->name[s->names] = (struct afz_site_name){.text = copy};
        return s->names++;
}

/* The number of a text; *hash goes on with it. */
static uint32_t name_of(struct afz_sites *s, const char *text, const unsigned char *id,
                        uint32_t id_bytes, uint64_t *hash)
{
        uint64_t own = hash_bytes(hash_bytes(1, text, strlen(text)), id, id_bytes), number;
        *hash = mix(*hash, own);
        if (afz_map_get(s->by_name, own, &number))
                return (uint32_t)number;
        uint32_t at = add_name(s, own, text);
        if (at > 0 && id_bytes > 0) {
                memcpy(s->name[at].build_id, id, id_bytes);
                s->name[at].build_id_bytes = id_bytes;
        }
        return at;
}

/* ---- stacks ---- */

static void read_frame(struct afz_sites *s, const struct afz_book *book, uint64_t first_ns,
                       uint64_t frame, struct afz_site_frame *ret, uint64_t *hash)
{
        char text[AFZ_BOOK_TEXT_CAP];
        struct afz_book_place place;
        if (frame & AFZ_FRAME_PYTHON) {
                ret->python = true;
                ret->at = AFZ_FRAME_LINE(frame);
                ret->file =
                        name_of(s, afz_book_text(book, AFZ_FRAME_FILE(frame), text), NULL, 0, hash);
                ret->function = name_of(s, afz_book_text(book, AFZ_FRAME_FUNCTION(frame), text),
                                        NULL, 0, hash);
        } else if (afz_book_place(book, frame, first_ns, &place)) {
                ret->file = name_of(s, place.path, place.build_id, place.build_id_bytes, hash);
                ret->at = place.address;
        } /* else code that was made at run time: where it lies says nothing to anybody */
        *hash = mix(*hash, ret->at << 1 | ret->python);
}

static uint32_t add_site(struct afz_sites *s, const struct afz_site *new,
                         const struct afz_site_frame *frame)
{
        size_t bytes = new->frames * sizeof *frame;
        struct afz_site_frame *copy = s->sites < AFZ_SITES_MOST ? malloc(bytes ? bytes : 1) : NULL;
        if (!copy || afz_map_put(s->by_id, new->id, s->sites) < 0) {
                free(copy);
                return 0;
        }
        if (bytes > 0)
                memcpy(copy, frame, bytes);
        s->site[s->sites] = *new;
        s->site[s->sites].frame = copy;
        return s->sites++;
}

/* What a script can read as a number, and never 0. */
static uint64_t id_of(uint64_t hash)
{
        return hash >> 16 | 1;
}

uint32_t afz_sites_number(struct afz_sites *s, const struct afz_book *book,
                          const struct afz_book_look *look)
{
        struct afz_site_frame frame[AFZ_STACK_MAX] = {0};
        uint64_t id = mix(0, look->kind), number;
        for (unsigned i = 0; i < look->frames; i++)
                read_frame(s, book, look->first_ns, look->frame[i], &frame[i], &id);
        id = id_of(id);
        if (afz_map_get(s->by_id, id, &number))
                return (uint32_t)number;
        const struct afz_site new = {.id = id, .kind = look->kind, .frames = look->frames};
        return add_site(s, &new, frame);
}

uint32_t afz_sites_line(struct afz_sites *s, enum afz_site_kind kind,
                        const struct afz_site_frame *frame, unsigned frames, const char *name)
{
        uint64_t id = mix(mix(1, AFZ_SITE_LINE), kind), number;
        for (unsigned i = 0; i < frames; i++)
                id = mix(mix(mix(id, frame[i].file), frame[i].function), frame[i].at);
        if (frames == 0)
                id = hash_bytes(id, name, strlen(name));
        id = id_of(id);
        if (afz_map_get(s->by_id, id, &number))
                return (uint32_t)number;
        struct afz_site new = {.id = id, .role = AFZ_SITE_LINE, .kind = kind, .frames = frames};
        if (frames == 0)
                snprintf(new.name, sizeof new.name, "%s", name);
        return add_site(s, &new, frame);
}

/* ---- sums ---- */

/* Pages of it are only taken as they are used, whatever malloc() is told to do. */
static void *make_table(size_t bytes)
{
        void *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        return map == MAP_FAILED ? NULL : map;
}

static void free_table(void *table, size_t bytes)
{
        if (table)
                (void)munmap(table, bytes);
}

int afz_sites_new(struct afz_sites **ret)
{
        struct afz_sites *s = calloc(1, sizeof *s);
        if (!s)
                return -ENOMEM;
        s->site = make_table(AFZ_SITES_MOST * sizeof *s->site);
        s->name = make_table(MOST_NAMES * sizeof *s->name);
        if (!s->site || !s->name || afz_map_new(AFZ_SITES_MOST, &s->by_id) < 0 ||
            afz_map_new(MOST_NAMES, &s->by_name) < 0) {
                afz_sites_free(s);
                return -ENOMEM;
        }
        s->sites = s->names = 1;
        s->name[0].text = strdup("?");
        *ret = s;
        return 0;
}

void afz_sites_free(struct afz_sites *s)
{
        if (!s)
                return;
        for (uint32_t i = 0; s->site && i < s->sites; i++)
                free(s->site[i].frame);
        for (uint32_t i = 0; s->name && i < s->names; i++)
                free(s->name[i].text);
        afz_map_free(s->by_id);
        afz_map_free(s->by_name);
        free_table(s->site, AFZ_SITES_MOST * sizeof *s->site);
        free_table(s->name, MOST_NAMES * sizeof *s->name);
        free(s);
}

void afz_sites_begin(struct afz_sites *s)
{
        for (uint32_t i = 0; i < s->sites; i++) {
                s->site[i].now = (struct afz_site_count){.total_bytes = s->site[i].gone_bytes};
                s->site[i].processes = 0;
        }
}

void afz_site_count_add(struct afz_site_count *sum, const struct afz_site_count *count)
{
        sum->live_bytes += count->live_bytes;
        sum->blocks += count->blocks;
        sum->total_bytes += count->total_bytes;
        sum->early_bytes += count->early_bytes;
        sum->counted_bytes += count->counted_bytes;
        sum->high_bytes += count->high_bytes;
        sum->low_bytes += count->low_bytes;
        sum->aged_bytes += count->aged_bytes;
        sum->aged_s += count->aged_s;
        sum->stepped_bytes += count->stepped_bytes;
        sum->stepped_steps += count->stepped_steps;
}

void afz_sites_add(struct afz_sites *s, uint32_t number, const struct afz_site_count *count)
{
        struct afz_site *site = &s->site[number < s->sites ? number : 0];
        afz_site_count_add(&site->now, count);
        site->processes += count->live_bytes > 0;
}

void afz_sites_gone(struct afz_sites *s, uint32_t number, uint64_t total_bytes)
{
        s->site[number < s->sites ? number : 0].gone_bytes += total_bytes;
}
