#ifndef AFZ_JUDGE_FIXTURE_H
#define AFZ_JUDGE_FIXTURE_H
/* For tests of judges: a flight that is made anew for each test, and what to ask of verdicts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "count_of.h"
#include "flight_fixture.h"
#include "judges.h"

static struct afz_flight flight;

static int setup(void **state)
{
        (void)state;
        afz_flight_init(&flight);
        return 0;
}

static int teardown(void **state)
{
        (void)state;
        afz_flight_done(&flight);
        return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

typedef void (*judge_function)(const struct afz_case *c, struct afz_outcome *ret);

/* What one judge says: at most one verdict, and that one whole. */
static inline struct afz_outcome ask(judge_function judge, const struct afz_case *c)
{
        struct afz_outcome outcome = {.end = c->facts.end};
        judge(c, &outcome);
        assert_in_range(outcome.verdicts, 0, 1);
        if (outcome.verdicts > 0) {
                const struct afz_verdict *v = &outcome.verdict[0];
                assert_true(v->confidence > 0 && v->confidence <= 1);
                assert_true(v->id[0] != '\0' && v->summary[0] != '\0');
        }
        return outcome;
}

static inline bool has_evidence(const struct afz_verdict *v, const char *words)
{
        for (int i = 0; i < AFZ_EVIDENCE_MAX; i++)
                if (strstr(v->evidence[i], words))
                        return true;
        return false;
}

#define assert_words(text, words)                                                                  \
        do {                                                                                       \
                if (!strstr(text, words))                                                          \
                        fail_msg("\"%s\" does not have \"%s\"", text, words);                      \
        } while (0)

#endif
