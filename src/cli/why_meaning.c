#include "why_meaning.h"

#include <stddef.h>
#include <string.h>

const struct afz_why_page *afz_why_meaning(const char *id)
{
        size_t kind = strcspn(id, ":");
        const struct afz_why_page *of_kind = NULL;
        for (const struct afz_why_page *page = afz_why_pages; page->id; page++) {
                if (strcmp(id, page->id) == 0)
                        return page;
                if (strlen(page->id) == kind && strncmp(id, page->id, kind) == 0)
                        of_kind = page;
        }
        return of_kind;
}

const struct afz_why_page *afz_why_meaning_at(unsigned i)
{
        return afz_why_pages[i].id ? &afz_why_pages[i] : NULL;
}
