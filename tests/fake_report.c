/* Writes the report of a run that was made by hand, for tests that look at it in a browser.
 *
 *   fake_report leak|day|hostile|nothing|one|many > page.html
 */
#include <stdio.h>
#include <unistd.h>

#include "report_fixture.h"

int main(int argc, char **argv)
{
        static char buf[65536];
        struct afz_out out = afz_out_to(STDOUT_FILENO, buf, sizeof buf);
        struct fix_page *page = fix_page_new(argc > 1 ? argv[1] : "");
        int r = afz_report_put(&out, &page->report);
        fix_page_free(page);
        return r < 0 || afz_out_flush(&out) < 0;
}
