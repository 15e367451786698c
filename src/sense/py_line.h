#ifndef AFZ_PY_LINE_H
#define AFZ_PY_LINE_H
/* From an instruction of a code object to the line of the source, by the table that the code object
 * carries. */
#include <stdint.h>

#include "py_layout.h"
#include "py_memory.h"

/*
 * The line at the byte offset `at` of the instructions (negative: not begun yet), of a code object
 * whose first line is `first` and whose table is the bytes object at `table`. 0: that instruction
 * belongs to no line, or the table is broken, too long (over 1 MB) or ends before it. -errno only
 * when memory can't be read.
 */
int afz_py_line(const struct afz_py_memory *m, const struct afz_py_layout *l, uint64_t table,
                int32_t first, int64_t at);

#endif
