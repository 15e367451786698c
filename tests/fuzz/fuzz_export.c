/* Any bytes as a flight: names, metrics, times, values and marks. Its export is well-formed: JSON
 * is sound, lines of the others are UTF-8 without control characters. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "export.h"
#include "json_read.h"
#include "utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ROOM = 1 << 20, MOST = 1024, FORMS = 4 };

struct feed {
        const uint8_t *p;
        size_t n;
};

static void require(int holds)
{
        if (!holds)
                abort();
}

static uint8_t byte(struct feed *f)
{
        if (f->n == 0)
                return 0;
        f->n--;
        return *f->p++;
}

static int64_t number(struct feed *f)
{
        uint64_t v = 0;
        for (uint8_t i = byte(f) % 9; i > 0; i--)
                v = v << 8 | byte(f);
        return (int64_t)v;
}

static void text(struct feed *f, char ret[64])
{
        size_t n = byte(f) % 64;
        for (size_t i = 0; i < n; i++)
                ret[i] = (char)byte(f);
        ret[n] = '\0';
}

static void take_sample(struct feed *f, struct afz_flight *flight)
{
        char name[64], detail[64];
        struct afz_subject subject = {.kind = (enum afz_kind)(byte(f) % (AFZ_KIND_COUNT + 2)),
                                      .id = (uint64_t)number(f),
                                      .start = byte(f)};
        text(f, name);
        text(f, detail);
        struct afz_track *track = afz_flight_track(flight, &subject, name, detail, NULL);
        unsigned metric = (unsigned)subject.kind << 8 | byte(f) % AFZ_METRICS_PER_KIND;
        for (unsigned i = byte(f) % 4; track && i > 0; i--) {
                struct afz_point point = {(uint32_t)number(f), byte(f), number(f), number(f),
                                          number(f)};
                (void)afz_flight_add(flight, track, (enum afz_metric)metric, &point);
        }
}

static void check_line(struct afz_span line)
{
        for (size_t i = 0, n; i < line.n; i += n) {
                n = afz_utf8_length(line.p + i, line.n - i);
                require(n > 0 && (unsigned char)line.p[i] >= 0x20);
        }
}

static void check(const struct afz_exporter *e, struct afz_span all)
{
        struct afz_json_value doc;
        struct afz_span line;
        if (strcmp(e->name, "chrome-trace") == 0)
                require(afz_json_read(all, &doc) == 0);
        while (afz_span_take_line(&all, &line) == 0) {
                check_line(line);
                if (strcmp(e->name, "jsonl") == 0)
                        require(afz_json_read(line, &doc) == 0);
        }
        require(all.n == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static char buf[ROOM];
        struct feed f = {data, size};
        struct afz_flight flight;
        char word[64];
        if (size > MOST)
                return 0;
        /* The first byte says in which form: one an input, so that they come fast. */
        const struct afz_exporter *e = &afz_exporters[byte(&f) % FORMS];
        afz_flight_init(&flight);
        text(&f, word);
        flight.head.cmd = strdup(word);
        flight.head.started_s = number(&f);
        while (f.n > 0) {
                if (byte(&f) % 3) {
                        take_sample(&f, &flight);
                        continue;
                }
                text(&f, word);
                (void)afz_flight_mark(&flight, (uint32_t)number(&f),
                                      (enum afz_mark_kind)(byte(&f) % (AFZ_MARK_COUNT + 1)),
                                      number(&f), word, strlen(word));
        }
        struct afz_out out = afz_out_to(-1, buf, sizeof buf);
        e->put(&flight, &out);
        if (out.err == 0) /* else it is cut */
                check(e, (struct afz_span){buf, out.len});
        afz_flight_done(&flight);
        return 0;
}
