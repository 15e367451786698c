#ifndef AFZ_WHY_MEANING_H
#define AFZ_WHY_MEANING_H
/* What each verdict means, for `why --explain ID`: docs/verdicts.md in a paragraph each. */

/* NULL: there is no such verdict. Of "hang:spin" that of "hang:spin", or else that of "hang". */
const char *afz_why_meaning(const char *id);

/* The ids, one after the other; NULL behind the last. */
const char *afz_why_meaning_id(unsigned i);

#endif
