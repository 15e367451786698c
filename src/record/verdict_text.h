#ifndef AFZ_VERDICT_TEXT_H
#define AFZ_VERDICT_TEXT_H
/* A verdict.json as it lies there, read and told. Folders may come from anybody. */
#include <stddef.h>

#include "out.h"
#include "span.h"

/* All of it; to be freed. -EBADMSG: it is no file, or larger than any that we write; -ELOOP: a link
 * lies in its place. */
int afz_verdict_text_read(int dir_fd, const char *path, char **ret, size_t *ret_bytes);

/* As one line of JSON without control characters, whatever it says. -EBADMSG: it is no JSON object,
 * and nothing is told. */
int afz_verdict_text_tell(struct afz_span text, struct afz_out *out);

#endif
