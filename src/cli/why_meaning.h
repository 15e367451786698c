#ifndef AFZ_WHY_MEANING_H
#define AFZ_WHY_MEANING_H
/* What each verdict means, for `why --explain ID`: the pages of docs/verdicts, which why_pages.py
 * makes into text for a terminal when Antifreeze is built.
 */

struct afz_why_page {
        const char *id;
        const char *line; /* what it says, in one line */
        const char *text; /* all of the page, 80 columns wide, ending with a newline */
};

/* NULL: there is no such verdict. Of "hang:spin" that of "hang:spin", or else that of "hang". */
const struct afz_why_page *afz_why_meaning(const char *id);

/* All of them, one after the other; NULL behind the last. */
const struct afz_why_page *afz_why_meaning_at(unsigned i);

/* Made of the pages; ends with a row without id. */
extern const struct afz_why_page afz_why_pages[];

#endif
