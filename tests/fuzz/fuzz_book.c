/* Any bytes strewn over a book: the keeper reads it, adds up its sites and names them; every index
 * stays inside, every text ends and is printable, no sum runs over. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "keeper_blocks.h"
#include "keeper_inside.h"
#include "keeper_names.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int holds)
{
        if (!holds)
                abort();
}

static void require_printable(const char *text)
{
        for (; *text; text++)
                require(((unsigned char)*text >= 0x20 || *text == '\n') && *text != 0x7f);
}

/* Of the input, pieces of 16 bytes: six say where (so that the small tables are hit, too), ten are
 * put there. */
static void strew(unsigned char *book, const uint8_t *data, size_t size, bool clean)
{
        static const size_t at[] = {
                0,
                offsetof(struct afz_book, site),
                offsetof(struct afz_book, module),
                offsetof(struct afz_book, address),
                offsetof(struct afz_book, block),
                offsetof(struct afz_book, frame),
                offsetof(struct afz_book, texts),
        };
        for (; size >= 16; data += 16, size -= 16) {
                uint32_t offset = (uint32_t)data[1] << 16 | (uint32_t)data[2] << 8 | data[3];
                size_t from = at[data[0] % (sizeof at / sizeof *at)] + offset % 4096;
                if (from + 10 > AFZ_BOOK_BYTES)
                        continue;
                if (clean) /* for the next */
                        memset(book + from, 0, 10);
                else
                        memcpy(book + from, data + 6, 10);
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static unsigned char *bytes;
        if (!bytes)
                bytes = calloc(1, AFZ_BOOK_BYTES);
        struct afz_book *book = (struct afz_book *)(void *)bytes;
        struct afz_book_look look;
        static struct afz_block_sums sums;
        const struct afz_block_clock clock = {.age_s = 1000, .step = 1000};
        struct afz_inside inside = {0};
        struct afz_book_live block;
        unsigned reads = 0;
        struct afz_sites *sites;
        char stack[AFZ_SITE_STACK_CAP];
        if (!bytes || size > 4096 || afz_sites_new(&sites) < 0)
                return 0;
        strew(bytes, data, size, false);
        for (unsigned i = 0; i < 64; i++) {
                if (!afz_book_look(book, i, true, &look))
                        continue;
                require(look.frames <= AFZ_STACK_MAX && look.live_bytes < AFZ_BOOK_SANE);
                require(look.early_bytes <= look.live_bytes && look.large_bytes <= look.live_bytes);
                require(afz_sites_number(sites, book, &look) < sites->sites);
                uint64_t high, low;
                afz_book_water(book, i, look.live_bytes, &high, &low);
                require(low <= look.live_bytes && look.live_bytes <= high && high < AFZ_BOOK_SANE);
        }
        if (size % 2 == 0) { /* each is a walk over half a megabyte */
                for (unsigned cursor = 0; afz_book_next_live(book, &cursor, &block);)
                        require(block.site < AFZ_BOOK_SITES && block.at + block.bytes > block.at);
        } else {
                afz_blocks_look(&sums, book, &clock, NULL, &reads);
                for (unsigned i = 0; i < 64; i++)
                        require(sums.bytes_s[i] <= sums.bytes[i] * 1000 &&
                                sums.bytes_steps[i] <= sums.bytes[i] * 1000);
        }
        afz_inside_look(&inside, book);
        for (unsigned i = 0; i < AFZ_TOLD_COUNT; i++)
                require(inside.now.told[i] == AFZ_TOLD_NOT || inside.now.told[i] < AFZ_BOOK_SANE);
        require(inside.now.heap_used_bytes <= inside.now.heap_taken_bytes &&
                inside.now.high_bytes < AFZ_BOOK_SANE);
        for (uint32_t i = 0; i < sites->sites; i++) {
                afz_site_set_name(sites, &sites->site[i], NULL, stack);
                require_printable(stack);
                require_printable(sites->site[i].name);
        }
        afz_sites_free(sites);
        strew(bytes, data, size, true);
        memset(bytes, 0, offsetof(struct afz_book, site[64])); /* who reads sets marks */
        return 0;
}
