#ifndef AFZ_SECRET_H
#define AFZ_SECRET_H
/* Command lines without what nobody else should read: passwords, tokens, keys. What looks like one
 * is written as "***". It goes by names (--token X, API_KEY=X), by the forms of URLs
 * (https://user:X@host) and by how well-known tokens begin; the tables are in secret.c. A secret
 * that looks like any other word is not found, so this is for showing, not a promise.
 */
#include <stdbool.h>

#include "out.h"
#include "span.h"

/* Whether the value behind such a name is one: "--api-key", "HF_TOKEN", "db.password", "-p". Not:
 * "max-tokens", "tokenizer". */
bool afz_secret_is_name(struct afz_span name);

/* A command line as it is shown: words and blanks stay. */
void afz_secret_put(struct afz_out *out, struct afz_span cmd);

/* The same into a buffer, cut to fit, with control characters as '?'. Returns buf. */
char *afz_secret_text(const char *cmd, char *buf, size_t cap);

#endif
