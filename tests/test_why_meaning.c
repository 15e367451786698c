/* Every verdict that a judge gives has its own words in `why --explain`. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "count_of.h"
#include "leak_kind.h"
#include "verdicts.h"
#include "why_meaning.h"

/* The row of this very id, not that of its family. */
static void must_have(const char *id)
{
        const char *known;
        for (unsigned i = 0; (known = afz_why_meaning_id(i)); i++)
                if (strcmp(known, id) == 0) {
                        assert_non_null(afz_why_meaning(id));
                        return;
                }
        fail_msg("%s has no words in why_meaning.c", id);
}

static void judges(void **state)
{
        (void)state;
        for (unsigned i = 0; i + 1 < afz_judges_count; i++) /* the last are the ends */
                must_have(afz_judges[i].id);
}

static void leaks(void **state)
{
        const struct afz_leak_kind *kind;
        (void)state;
        for (unsigned i = 0; (kind = afz_leak_kind_at(i)); i++)
                must_have(kind->id);
}

static void ends_and_hangs(void **state)
{
        static const char *const id[] = {
                "clean",      "exception",       "crash",      "killed-externally",
                "oom-killed", "host-exhaustion", "fork-storm", "checkpoint-signal",
                "lost",       "machine-lost",    "not-known",  "hang:deadlock",
                "hang:spin",  "hang:worker-dead"};
        (void)state;
        for (unsigned i = 0; i < AFZ_COUNT_OF(id); i++)
                must_have(id[i]);
}

/* A kind that is told one day and not known here has the words of its family; else nothing. */
static void others(void **state)
{
        (void)state;
        assert_ptr_equal(afz_why_meaning("leak:novel"), afz_why_meaning("leak"));
        assert_ptr_not_equal(afz_why_meaning("leak:shm"), afz_why_meaning("leak"));
        assert_null(afz_why_meaning("leaks"));
        assert_null(afz_why_meaning("lea"));
        assert_null(afz_why_meaning(""));
        assert_null(afz_why_meaning(":"));
        assert_null(afz_why_meaning("gremlins"));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(judges),
                cmocka_unit_test(leaks),
                cmocka_unit_test(ends_and_hangs),
                cmocka_unit_test(others),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
