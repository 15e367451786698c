/* Every verdict that a judge gives has a page for `why --explain`, and every page a verdict. */
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

/* What the judges of ends and of hangs say, which have one row for many. */
static const char *const others[] = {
        "clean",      "exception",       "crash",     "killed-externally", "oom-killed",
        "fork-storm", "host-exhaustion", "lost",      "checkpoint-signal", "machine-lost",
        "not-known",  "hang:deadlock",   "hang:spin", "hang:worker-dead"};

/* The i-th of all ids that are said; some come twice. NULL behind the last. */
static const char *said(unsigned i)
{
        const struct afz_leak_kind *kind;
        if (i + 1 < afz_judges_count) /* the last row is the ends */
                return afz_judges[i].id;
        i -= afz_judges_count - 1;
        if (i < AFZ_COUNT_OF(others))
                return others[i];
        kind = afz_leak_kind_at(i - (unsigned)AFZ_COUNT_OF(others));
        return kind ? kind->id : NULL;
}

static void verdicts_have_pages(void **state)
{
        const char *id;
        (void)state;
        for (unsigned i = 0; (id = said(i)); i++) {
                const struct afz_why_page *page = afz_why_meaning(id);
                if (!page || strcmp(page->id, id) != 0) /* its own, not that of its family */
                        fail_msg("%s has no page in docs/verdicts", id);
        }
}

static void pages_have_verdicts(void **state)
{
        const struct afz_why_page *page;
        (void)state;
        for (unsigned i = 0; (page = afz_why_meaning_at(i)); i++) {
                const char *id = NULL;
                for (unsigned k = 0; (id = said(k)) && strcmp(id, page->id) != 0;)
                        k++;
                if (!id)
                        fail_msg("docs/verdicts has a page for %s, which nobody says", page->id);
                assert_true(strncmp(page->text, id, strlen(id)) == 0);
                assert_ptr_equal(afz_why_meaning(page->id), page); /* no id has two */
        }
}

/* A kind that is told one day and not known here has the page of its family; else nothing. */
static void kinds(void **state)
{
        (void)state;
        assert_non_null(afz_why_meaning("leak"));
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
                cmocka_unit_test(verdicts_have_pages),
                cmocka_unit_test(pages_have_verdicts),
                cmocka_unit_test(kinds),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
