/* What is to be copied. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "convert.h"
#include "image.h"
#include "pack.h"
#include "plan.h"
#include "quantity.h"

enum {
        TRIAL_CHUNKS = 8,         /* that are packed to learn how well it goes */
        TRIAL_BYTES = 32 << 20,   /* that a trial may take beyond the least */
        DESCRIPTION_BYTES = 8192, /* of each array and of the group, at most about */
};

enum afz_end afz_source_failed(struct afz_outcome *outcome, int error, const char *why)
{
        static const struct {
                const char *loaders, *ours;
        } rows[] = {
                {AFZ_IMAGE_GIVE_SIZE, "--resize HEIGHTxWIDTH makes all one size"},
                {"format=\"raw\"", "--format raw"},
                {"format=\"tokens\"", "--format tokens"},
                {"details=", "--details "},
        };
        enum afz_end end = error == -ENOMEM ? AFZ_END_OWN : AFZ_END_BAD;
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
                const char *at = strstr(why, rows[i].loaders);
                if (at)
                        return afz_end_with(outcome, end, "%.*s%s%s", (int)(at - why), why,
                                            rows[i].ours, at + strlen(rows[i].loaders));
        }
        return afz_end_with(outcome, end, "%s", why);
}

static enum afz_end open_loader(const struct afz_wish *wish, struct afz_outcome *outcome,
                                struct afz_loader_options more, struct afz_loader **ret)
{
        const char *paths[] = {wish->source, wish->labels};
        char why[AFZ_WHY_MAX], own[AFZ_SIZE_TEXT_CAP], all[AFZ_SIZE_TEXT_CAP];
        uint64_t own_bytes = wish->budget_bytes - more.budget_bytes;
        more.paths = paths;
        more.path_count = wish->labels ? 2 : 1;
        more.format = wish->arrow ? "arrow" : wish->format;
        more.details = wish->arrow ? NULL : wish->details; /* Python has seen to them */
        more.source = wish->arrow;
        more.threads = (uint32_t)wish->threads;
        more.image = wish->image;
        int r = afz_loader_open(&more, ret, why);
        if (r == -ENOSPC && own_bytes > 0)
                return afz_end_with(outcome, AFZ_END_BAD,
                                    "%s (packing takes %s more): give --budget more than %s", why,
                                    afz_format_size(own, sizeof own, own_bytes),
                                    afz_format_size(all, sizeof all, wish->budget_bytes));
        return r < 0 ? afz_source_failed(outcome, r, why) : AFZ_END_GOOD;
}

/* ---- what it is called ---- */

static bool is_taken(const struct afz_outcome *outcome, uint32_t count, const char *name)
{
        for (uint32_t i = 0; i < count; i++)
                if (strcmp(outcome->array[i].name, name) == 0)
                        return true;
        return false;
}

/* A name that Zarr allows, and no other array has: as the loader names the field, where it can be.
 */
static void name_array(struct afz_outcome *outcome, uint32_t which)
{
        char plain[32], *name = outcome->array[which].name;
        const size_t cap = sizeof outcome->array[which].name;
        snprintf(plain, sizeof plain, "%s", outcome->array[which].field.name);
        for (char *at = plain; *at; at++)
                if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.",
                            *at))
                        *at = '_';
        if (plain[0] == '.' || strncmp(plain, "__", 2) == 0)
                plain[0] = 'x';
        if (plain[0] == '\0' || strcmp(plain, "zarr.json") == 0)
                snprintf(plain, sizeof plain, "%s", which == 0 ? "samples" : "labels");
        snprintf(name, cap, "%s", plain);
        for (uint32_t i = 2; is_taken(outcome, which, name); i++)
                snprintf(name, cap, "%s_%u", plain, i);
}

/* ---- what there is of it ---- */

static uint64_t most_on_disk(const struct afz_outcome *o)
{
        uint64_t index = o->layout.shards * afz_array_index_bytes(&o->layout), bytes = 0;
        for (uint32_t i = 0; i < o->arrays; i++)
                bytes += o->layout.chunks * afz_pack_most_bytes(o->array[i].field.bytes *
                                                                o->layout.chunk_samples) +
                         index;
        return bytes + (o->arrays + 1) * (uint64_t)DESCRIPTION_BYTES;
}

enum afz_end afz_source_look(const struct afz_wish *wish, struct afz_outcome *ret)
{
        struct afz_loader *loader = NULL;
        struct afz_loader_facts facts;
        uint64_t sample_bytes = 0;
        enum afz_end end =
                open_loader(wish, ret,
                            (struct afz_loader_options){.budget_bytes = wish->budget_bytes,
                                                        .batch = 1,
                                                        .shuffle = AFZ_SHUFFLE_NONE},
                            &loader);
        if (end != AFZ_END_GOOD)
                return end;
        afz_loader_facts(loader, &facts);
        afz_loader_close(loader);
        ret->arrays = facts.fields;
        for (uint32_t i = 0; i < facts.fields; i++) {
                ret->array[i].field = facts.field[i];
                name_array(ret, i);
                sample_bytes += facts.field[i].bytes;
        }
        if (afz_layout_make(facts.samples, sample_bytes, wish->chunk_bytes, wish->shard_bytes,
                            &ret->layout) < 0)
                return afz_end_with(ret, AFZ_END_BAD, "%.300s: too large to be true", wish->source);
        ret->least_bytes =
                facts.floor_bytes + AFZ_BATCHES_LEAST * ret->layout.chunk_samples * sample_bytes;
        ret->plain_bytes = facts.samples * sample_bytes;
        ret->most_bytes = most_on_disk(ret);
        return AFZ_END_GOOD;
}

enum afz_end afz_source_open(const struct afz_wish *wish, struct afz_outcome *outcome,
                             uint64_t first, uint64_t own_bytes, struct afz_loader **ret)
{
        char all[AFZ_SIZE_TEXT_CAP], own[AFZ_SIZE_TEXT_CAP];
        if (own_bytes >= wish->budget_bytes)
                return afz_end_with(outcome, AFZ_END_BAD,
                                    "packing alone takes %s, --budget is %s: give more, or take "
                                    "smaller chunks (--chunk) or a lower --level",
                                    afz_format_size(own, sizeof own, own_bytes),
                                    afz_format_size(all, sizeof all, wish->budget_bytes));
        return open_loader(
                wish, outcome,
                (struct afz_loader_options){.budget_bytes = wish->budget_bytes - own_bytes,
                                            .batch = (uint32_t)outcome->layout.chunk_samples,
                                            .shuffle = AFZ_SHUFFLE_NONE,
                                            .start = first},
                ret);
}

/* ---- how well it packs ---- */

static enum afz_end pack_some(struct afz_loader *loader, struct afz_outcome *o,
                              struct afz_packer *packer, uint64_t *ret_plain, uint64_t *ret_packed)
{
        for (uint32_t n = 0; n < TRIAL_CHUNKS; n++) {
                struct afz_batch batch;
                char why[AFZ_WHY_MAX];
                int r = afz_loader_next(loader, &batch, why);
                if (r == 0)
                        break;
                if (r < 0)
                        return afz_source_failed(o, r, why);
                for (uint32_t i = 0; i < o->arrays; i++) {
                        uint64_t bytes = batch.count * o->array[i].field.bytes, packed = 0;
                        const uint8_t *unused;
                        r = afz_pack(packer, batch.data[i], bytes, bytes, &unused, &packed);
                        afz_packer_empty(packer);
                        if (r < 0)
                                break;
                        *ret_plain += bytes, *ret_packed += packed;
                }
                afz_loader_release(loader, batch.lease);
                if (r < 0)
                        return afz_end_with(o, AFZ_END_OWN, "no memory");
        }
        return AFZ_END_GOOD;
}

/* Shuffled: chunks from all over the data, while the beginning may be unlike the rest. */
enum afz_end afz_source_try(const struct afz_wish *wish, struct afz_outcome *ret)
{
        struct afz_loader *loader = NULL;
        uint64_t largest = 0, plain = 0, packed = 0;
        for (uint32_t i = 0; i < ret->arrays; i++)
                if (ret->array[i].field.bytes > largest)
                        largest = ret->array[i].field.bytes;
        largest *= ret->layout.chunk_samples;
        struct afz_packer *packer =
                afz_packer_new(wish->level, largest, afz_pack_most_bytes(largest));
        if (!packer)
                return afz_end_with(ret, AFZ_END_OWN, "no memory");
        uint64_t few = ret->least_bytes + TRIAL_BYTES, own = afz_packer_bytes(packer);
        uint64_t most = own < wish->budget_bytes ? wish->budget_bytes - own : 0;
        enum afz_end end = open_loader(
                wish, ret,
                (struct afz_loader_options){.batch = (uint32_t)ret->layout.chunk_samples,
                                            .shuffle = AFZ_SHUFFLE_WINDOW,
                                            .budget_bytes = few < most ? few : most},
                &loader);
        if (end == AFZ_END_GOOD)
                end = pack_some(loader, ret, packer, &plain, &packed);
        afz_loader_close(loader);
        afz_packer_free(packer);
        if (end == AFZ_END_GOOD && plain > 0) {
                double part = (double)packed / (double)plain;
                uint64_t index =
                        ret->arrays * ret->layout.shards * afz_array_index_bytes(&ret->layout);
                ret->likely_bytes = (uint64_t)((double)ret->plain_bytes * part) + index +
                                    (ret->arrays + 1) * UINT64_C(1024);
        }
        return end;
}
